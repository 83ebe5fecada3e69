"""Gathers what one change means for each broker and sends it as few requests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.common.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.controller.controller_events import (
    ControllerEvent,
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from kafkapy.controller.state_change_logger import StateChangeLogger
from kafkapy.metadata.leader_and_isr import (
    EPOCH_DURING_DELETE,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
)
from kafkapy.metadata.replica_assignment import ReplicaAssignment

NO_EPOCH = -1

LEADER_AND_ISR_VERSION = 7
UPDATE_METADATA_VERSION = 8
STOP_REPLICA_VERSION = 4

T = TypeVar("T")
ResponseCallback = Callable[[Message], None]


class RequestSender(Protocol):
    """Takes a request for a broker; the callback runs on the broker's send thread."""

    def send_request(
        self, broker_id: int, request: Message, version: int, callback: ResponseCallback
    ) -> None: ...


def _by_topic(states: Mapping[TopicPartition, T]) -> dict[str, list[T]]:
    topics: dict[str, list[T]] = {}
    for partition, state in states.items():
        topics.setdefault(partition.topic, []).append(state)
    return topics


class IllegalBatchError(RuntimeError):
    """A batch was begun while the last one still held requests, or could not be sent.

    Ports: java.lang.IllegalStateException
    """


class ControllerBrokerRequestBatch:
    """LeaderAndIsr, UpdateMetadata and StopReplica requests under way to being sent.

    Belongs to the event thread. `new_batch`, then any number of `add_…`, then
    `send_requests_to_brokers`.

    Ports: kafka.controller.ControllerBrokerRequestBatch
    """

    def __init__(
        self,
        controller_id: int,
        *,
        context: ControllerContext,
        sender: RequestSender,
        send_event: Callable[[ControllerEvent], object],
        inter_broker_listener_name: str,
    ) -> None:
        self._controller_id = controller_id  # constant after construction
        self._context = context
        self._state_changes = StateChangeLogger(controller_id)
        self._sender = sender
        self._send_event = send_event
        self._inter_broker_listener_name = inter_broker_listener_name
        self._leader_and_isr: dict[
            int, dict[TopicPartition, LeaderAndIsrRequest.LeaderAndIsrPartitionState]
        ] = {}
        self._stop_replica: dict[
            int, dict[TopicPartition, StopReplicaRequest.StopReplicaPartitionState]
        ] = {}
        self._update_metadata_brokers: set[int] = set()
        self._update_metadata: dict[
            TopicPartition, UpdateMetadataRequest.UpdateMetadataPartitionState
        ] = {}

    def new_batch(self) -> None:
        """IllegalBatchError when requests of the last batch were never sent."""
        if self._leader_and_isr or self._stop_replica or self._update_metadata_brokers:
            raise IllegalBatchError(
                "Controller to broker state change requests batch is not empty while creating a "
                f"new one. Some state changes could be lost: LeaderAndIsr {self._leader_and_isr}, "
                f"StopReplica {self._stop_replica}, UpdateMetadata {self._update_metadata}"
            )

    def clear(self) -> None:
        self._leader_and_isr.clear()
        self._stop_replica.clear()
        self._update_metadata_brokers.clear()
        self._update_metadata.clear()

    def add_leader_and_isr_request_for_brokers(
        self,
        broker_ids: Iterable[int],
        partition: TopicPartition,
        info: LeaderIsrAndControllerEpoch,
        *,
        assignment: ReplicaAssignment,
        is_new: bool,
    ) -> None:
        """Also adds the partition to the UpdateMetadata request for all live brokers."""
        leader_and_isr = info.leader_and_isr
        for broker_id in broker_ids:
            if broker_id < 0:
                continue
            states = self._leader_and_isr.setdefault(broker_id, {})
            already = states.get(partition)
            states[partition] = LeaderAndIsrRequest.LeaderAndIsrPartitionState(
                topic_name=partition.topic,
                partition_index=partition.partition,
                controller_epoch=info.controller_epoch,
                leader=leader_and_isr.leader,
                leader_epoch=leader_and_isr.leader_epoch,
                isr=list(leader_and_isr.isr),
                partition_epoch=leader_and_isr.partition_epoch,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding_replicas),
                removing_replicas=list(assignment.removing_replicas),
                is_new=is_new or (already is not None and already.is_new),
                leader_recovery_state=int(leader_and_isr.leader_recovery_state),
            )
        self.add_update_metadata_request_for_brokers(
            self._context.live_or_shutting_down_broker_ids, (partition,)
        )

    def add_stop_replica_request_for_brokers(
        self, broker_ids: Iterable[int], partition: TopicPartition, *, delete_partition: bool
    ) -> None:
        leader_epoch = self._stop_replica_leader_epoch(partition)
        for broker_id in broker_ids:
            if broker_id < 0:
                continue
            states = self._stop_replica.setdefault(broker_id, {})
            already = states.get(partition)
            states[partition] = StopReplicaRequest.StopReplicaPartitionState(
                partition_index=partition.partition,
                leader_epoch=leader_epoch,
                delete_partition=delete_partition
                or (already is not None and already.delete_partition),
            )

    def add_update_metadata_request_for_brokers(
        self, broker_ids: Iterable[int], partitions: Collection[TopicPartition]
    ) -> None:
        self._update_metadata_brokers.update(b for b in broker_ids if b >= 0)
        for partition in partitions:
            state = self._update_metadata_partition_state(partition)
            if state is not None:
                self._update_metadata[partition] = state

    def send_requests_to_brokers(self, controller_epoch: int) -> None:
        """IllegalBatchError when anything fails: what was built then stays, and is logged."""
        log = self._state_changes.with_controller_epoch(controller_epoch)
        try:
            self._send_leader_and_isr_requests(controller_epoch, log)
            self._send_update_metadata_requests(controller_epoch, log)
            self._send_stop_replica_requests(controller_epoch, log)
        except Exception as error:
            raise IllegalBatchError(
                f"Haven't been able to send the state change requests of controller epoch "
                f"{controller_epoch}: LeaderAndIsr {self._leader_and_isr}, UpdateMetadata "
                f"{self._update_metadata}, StopReplica {self._stop_replica}"
            ) from error

    def _stop_replica_leader_epoch(self, partition: TopicPartition) -> int:
        if self._context.is_topic_queued_up_for_deletion(partition.topic):
            # Deletion does not wait for the broker to know the latest epoch.
            return EPOCH_DURING_DELETE
        info = self._context.partition_leadership_info(partition)
        return info.leader_and_isr.leader_epoch if info is not None else NO_EPOCH

    def _update_metadata_partition_state(
        self, partition: TopicPartition
    ) -> UpdateMetadataRequest.UpdateMetadataPartitionState | None:
        info = self._context.partition_leadership_info(partition)
        if info is None:
            return None  # no leader yet: brokers hear of the partition when it has one
        leader_and_isr = info.leader_and_isr
        if self._context.is_topic_queued_up_for_deletion(partition.topic):
            leader_and_isr = LeaderAndIsr.during_delete(leader_and_isr.isr)
        replicas = self._context.partition_replica_assignment(partition)
        return UpdateMetadataRequest.UpdateMetadataPartitionState(
            topic_name=partition.topic,
            partition_index=partition.partition,
            controller_epoch=info.controller_epoch,
            leader=leader_and_isr.leader,
            leader_epoch=leader_and_isr.leader_epoch,
            isr=list(leader_and_isr.isr),
            zk_version=leader_and_isr.partition_epoch,
            replicas=list(replicas),
            offline_replicas=[
                r for r in replicas if not self._context.is_replica_online(r, partition)
            ],
        )

    def _send_leader_and_isr_requests(
        self, controller_epoch: int, log: logging.LoggerAdapter[logging.Logger]
    ) -> None:
        for broker_id, states in self._leader_and_isr.items():
            if not self._context.is_live_or_shutting_down(broker_id):
                continue
            log.info(
                "Sending LeaderAndIsr request to broker %d with %d become-leader and %d "
                "become-follower partitions",
                broker_id,
                sum(state.leader == broker_id for state in states.values()),
                sum(state.leader != broker_id for state in states.values()),
            )
            if log.isEnabledFor(logging.DEBUG):
                for partition, state in states.items():
                    log.debug("LeaderAndIsr to broker %d for %s: %s", broker_id, partition, state)
            request = LeaderAndIsrRequest(
                controller_id=self._controller_id,
                controller_epoch=controller_epoch,
                broker_epoch=self._context.live_broker_id_and_epochs[broker_id],
                topic_states=[
                    LeaderAndIsrRequest.LeaderAndIsrTopicState(
                        topic_name=topic,
                        topic_id=self._context.topic_ids.get(topic, ZERO_UUID),
                        partition_states=partition_states,
                    )
                    for topic, partition_states in _by_topic(states).items()
                ],
                live_leaders=self._live_leaders({state.leader for state in states.values()}),
            )
            self._sender.send_request(
                broker_id, request, LEADER_AND_ISR_VERSION, self._on_leader_and_isr(broker_id)
            )
        self._leader_and_isr.clear()

    def _live_leaders(
        self, leader_ids: Collection[int]
    ) -> list[LeaderAndIsrRequest.LeaderAndIsrLiveLeader]:
        nodes = (
            broker.node(self._inter_broker_listener_name)
            for broker in self._context.live_or_shutting_down_brokers
            if broker.id in leader_ids
        )
        return [
            LeaderAndIsrRequest.LeaderAndIsrLiveLeader(
                broker_id=node.id, host_name=node.host, port=node.port
            )
            for node in nodes
        ]

    def _send_update_metadata_requests(
        self, controller_epoch: int, log: logging.LoggerAdapter[logging.Logger]
    ) -> None:
        broker_ids = [
            b for b in self._update_metadata_brokers if self._context.is_live_or_shutting_down(b)
        ]
        if broker_ids:
            log.info(
                "Sending UpdateMetadata request to brokers %s for %d partitions",
                broker_ids,
                len(self._update_metadata),
            )
        topic_states = [
            UpdateMetadataRequest.UpdateMetadataTopicState(
                topic_name=topic,
                topic_id=self._context.topic_ids.get(topic, ZERO_UUID),
                partition_states=partition_states,
            )
            for topic, partition_states in _by_topic(self._update_metadata).items()
        ]
        live_brokers = self._live_brokers()
        for broker_id in broker_ids:
            request = UpdateMetadataRequest(
                controller_id=self._controller_id,
                controller_epoch=controller_epoch,
                broker_epoch=self._context.live_broker_id_and_epochs[broker_id],
                topic_states=topic_states,
                live_brokers=live_brokers,
            )
            self._sender.send_request(
                broker_id, request, UPDATE_METADATA_VERSION, self._on_update_metadata(broker_id)
            )
        self._update_metadata_brokers.clear()
        self._update_metadata.clear()

    def _live_brokers(self) -> list[UpdateMetadataRequest.UpdateMetadataBroker]:
        return [
            UpdateMetadataRequest.UpdateMetadataBroker(
                id=broker.id,
                endpoints=[
                    UpdateMetadataRequest.UpdateMetadataEndpoint(
                        port=endpoint.port,
                        host=endpoint.host,
                        listener=endpoint.listener_name,
                        security_protocol=int(endpoint.security_protocol),
                    )
                    for endpoint in broker.endpoints
                ],
                rack=broker.rack,
            )
            for broker in self._context.live_or_shutting_down_brokers
        ]

    def _send_stop_replica_requests(
        self, controller_epoch: int, log: logging.LoggerAdapter[logging.Logger]
    ) -> None:
        for broker_id, states in self._stop_replica.items():
            if not self._context.is_live_or_shutting_down(broker_id):
                continue
            log.info(
                "Sending StopReplica request to broker %d for %d partitions, %d to be deleted",
                broker_id,
                len(states),
                sum(state.delete_partition for state in states.values()),
            )
            request = StopReplicaRequest(
                controller_id=self._controller_id,
                controller_epoch=controller_epoch,
                broker_epoch=self._context.live_broker_id_and_epochs[broker_id],
                topic_states=[
                    StopReplicaRequest.StopReplicaTopicState(
                        topic_name=topic, partition_states=partition_states
                    )
                    for topic, partition_states in _by_topic(states).items()
                ],
            )
            deleted = frozenset(p for p, state in states.items() if state.delete_partition)
            self._sender.send_request(
                broker_id, request, STOP_REPLICA_VERSION, self._on_stop_replica(broker_id, deleted)
            )
        self._stop_replica.clear()

    # The callbacks run on send threads: they only put events on the queue.

    def _on_leader_and_isr(self, broker_id: int) -> ResponseCallback:
        def callback(response: Message) -> None:
            assert isinstance(response, LeaderAndIsrResponse)
            self._send_event(LeaderAndIsrResponseReceived(response, broker_id))

        return callback

    def _on_update_metadata(self, broker_id: int) -> ResponseCallback:
        def callback(response: Message) -> None:
            assert isinstance(response, UpdateMetadataResponse)
            self._send_event(UpdateMetadataResponseReceived(response, broker_id))

        return callback

    def _on_stop_replica(
        self, broker_id: int, deleted: frozenset[TopicPartition]
    ) -> ResponseCallback:
        def callback(response: Message) -> None:
            assert isinstance(response, StopReplicaResponse)
            request_error = Errors.for_code(response.error_code)
            # A request refused as a whole may come back without its partitions.
            errors: dict[TopicPartition, Errors] = {}
            if request_error is not Errors.NONE:
                errors.update(dict.fromkeys(deleted, request_error))
            for entry in response.partition_errors:
                partition = TopicPartition(entry.topic_name, entry.partition_index)
                if partition in deleted:
                    errors[partition] = Errors.for_code(entry.error_code)
            # Only answers about deletion change the controller's state.
            if errors:
                self._send_event(
                    TopicDeletionStopReplicaResponseReceived(broker_id, request_error, errors)
                )

        return callback
