"""Contexts, stores and senders for controller tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition, random_topic_id
from kafkapy.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
    ResponseCallback,
)
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.controller.controller_events import ControllerEvent
from kafkapy.controller.controller_metrics import UNCLEAN_LEADER_ELECTIONS
from kafkapy.controller.partition_state_machine import PartitionStateMachine
from kafkapy.controller.replica_state_machine import ReplicaStateMachine
from kafkapy.metadata.broker import Broker
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.metadata.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.zk.kafka_zk_client import KafkaZkClient

LISTENER = "PLAINTEXT"


def broker(broker_id: int) -> Broker:
    end_point = EndPoint(LISTENER, SecurityProtocol.PLAINTEXT, "localhost", 9000 + broker_id)
    return Broker(broker_id, (end_point,))


def context_of(
    assignments: Mapping[TopicPartition, Sequence[int]], live: Sequence[int]
) -> ControllerContext:
    """Brokers have the epoch 100 + id; topics have ids."""
    context = ControllerContext()
    context.set_live_brokers({broker(b): 100 + b for b in live})
    context.set_all_topics(partition.topic for partition in assignments)
    for topic in context.all_topics:
        context.add_topic_id(topic, random_topic_id())
    for partition, replicas in assignments.items():
        context.update_partition_full_replica_assignment(partition, ReplicaAssignment.of(replicas))
    return context


def leadership(
    leader: int, isr: Sequence[int], *, leader_epoch: int = 0, controller_epoch: int = 1
) -> LeaderIsrAndControllerEpoch:
    return LeaderIsrAndControllerEpoch(
        LeaderAndIsr(leader=leader, leader_epoch=leader_epoch, isr=tuple(isr)), controller_epoch
    )


class RecordingSender:
    """Keeps requests instead of sending them."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Message]] = []
        self.callbacks: list[ResponseCallback] = []

    def send_request(
        self, broker_id: int, request: Message, version: int, callback: ResponseCallback
    ) -> None:
        request.encode(version)
        self.sent.append((broker_id, request))
        self.callbacks.append(callback)

    def of(self, kind: type[Message]) -> list[tuple[int, Message]]:
        return [(b, request) for b, request in self.sent if isinstance(request, kind)]


class Machines:
    """Both state machines over a real store, with a controller epoch of 1 in it."""

    def __init__(self, zk_client: KafkaZkClient, context: ControllerContext) -> None:
        self.context = context
        self.zk_client = zk_client
        self.sender = RecordingSender()
        self.events: list[ControllerEvent] = []
        self.metrics = MetricsRegistry()
        self.unclean = self.metrics.meter(UNCLEAN_LEADER_ELECTIONS)
        epoch, version = zk_client.register_controller_and_increment_controller_epoch(0)
        context.epoch, context.epoch_zk_version = epoch, version
        for topic in context.all_topics:
            zk_client.create_topic_assignment(
                topic,
                context.topic_ids[topic],
                {
                    p: context.partition_replica_assignment(p)
                    for p in context.partitions_for_topic(topic)
                },
            )
        self.batch = ControllerBrokerRequestBatch(
            0,
            context=context,
            sender=self.sender,
            send_event=self.events.append,
            inter_broker_listener_name=LISTENER,
        )
        self.partitions = PartitionStateMachine(
            0,
            is_unclean_enabled=lambda: False,
            context=context,
            zk_client=zk_client,
            request_batch=self.batch,
            unclean_leader_elections=self.unclean,
        )
        self.replicas = ReplicaStateMachine(
            0, context=context, zk_client=zk_client, request_batch=self.batch
        )

    def write_state(self, partition: TopicPartition, info: LeaderIsrAndControllerEpoch) -> None:
        """In the store and in the context."""
        responses = self.zk_client.create_topic_partition_states_raw(
            {partition: info}, self.context.epoch_zk_version
        )
        assert all(response.ok for response in responses)
        self.context.put_partition_leadership_info(partition, info)

    def stored(self, partition: TopicPartition) -> LeaderAndIsr:
        info = self.zk_client.get_topic_partition_state(partition)
        assert info is not None
        return info.leader_and_isr
