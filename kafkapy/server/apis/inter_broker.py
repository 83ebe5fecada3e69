"""What the controller and the brokers say to each other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kafkapy.common.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from kafkapy.common.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from kafkapy.common.protocol.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.common.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from kafkapy.common.types import TopicPartition
from kafkapy.controller.kafka_controller import KafkaController
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.replication.partition import Partition
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.server.admin_manager import AdminManager
from kafkapy.server.leader_elections import LeaderElections

log = logging.getLogger(__name__)


class Coordinator(Protocol):
    """Looks after what is stored in an internal topic, where this broker leads its partitions."""

    def on_election(self, partition: int, coordinator_epoch: int) -> None: ...

    def on_resignation(self, partition: int, coordinator_epoch: int | None) -> None: ...


class InterBrokerHandler:
    """Carries out the controller's decisions on this broker, and asks the controller for some.

    A request that names an older incarnation of this broker (a smaller broker epoch) was meant for
    it, not for us: it is refused with STALE_BROKER_EPOCH.

    Ports: kafka.server.KafkaApis.handleLeaderAndIsrRequest
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        replica_manager: ReplicaManager,
        controller: KafkaController,
        admin_manager: AdminManager,
        *,
        elections: LeaderElections,
        coordinators: Mapping[str, Coordinator],
        on_metadata_update: Callable[[], None],
        on_partitions_deleted: Callable[[Collection[TopicPartition]], None],
    ) -> None:
        self._request_channel = request_channel
        self._replica_manager = replica_manager
        self._controller = controller
        self._admin_manager = admin_manager
        self._elections = elections
        self._coordinators = coordinators  # by internal topic
        self._on_metadata_update = on_metadata_update
        self._on_partitions_deleted = on_partitions_deleted

    def handle_leader_and_isr(self, request: Request) -> None:
        body = request.body_as(LeaderAndIsrRequest)
        if self._is_stale(body.broker_epoch):
            response = LeaderAndIsrResponse(error_code=Errors.STALE_BROKER_EPOCH.code)
        else:
            response = self._replica_manager.become_leader_or_follower(
                request.header.correlation_id,
                body,
                request.header.api_version,
                on_leadership_change=self._on_leadership_change,
            )
        self._request_channel.send_response(request, response)

    def handle_stop_replica(self, request: Request) -> None:
        body = request.body_as(StopReplicaRequest)
        if self._is_stale(body.broker_epoch):
            response = StopReplicaResponse(error_code=Errors.STALE_BROKER_EPOCH.code)
        else:
            response = self._replica_manager.stop_replicas(
                request.header.correlation_id, body, request.header.api_version
            )
            self._resign_from_deleted(response)
        self._request_channel.send_response(request, response)

    def handle_update_metadata(self, request: Request) -> None:
        body = request.body_as(UpdateMetadataRequest)
        if self._is_stale(body.broker_epoch):
            response = UpdateMetadataResponse(error_code=Errors.STALE_BROKER_EPOCH.code)
        else:
            deleted = self._replica_manager.maybe_update_metadata_cache(
                request.header.correlation_id, body
            )
            self._on_partitions_deleted(deleted)
            told = _partitions(body)
            for topic in {topic_partition.topic for topic_partition in told}:
                self._admin_manager.try_complete_delayed_topic_operations(topic)
            self._elections.try_complete(told)
            self._on_metadata_update()
            response = UpdateMetadataResponse()
        self._request_channel.send_response(request, response)

    def handle_controlled_shutdown(self, request: Request) -> None:
        body = request.body_as(ControlledShutdownRequest)

        def respond(remaining: frozenset[TopicPartition] | Exception) -> None:
            if isinstance(remaining, Exception):
                error = Errors.for_exception(remaining)
                response = ControlledShutdownResponse(error_code=error.code)
            else:
                response = ControlledShutdownResponse(
                    remaining_partitions=[
                        ControlledShutdownResponse.RemainingPartition(
                            topic_name=topic, partition_index=partition
                        )
                        for topic, partition in sorted(remaining)
                    ]
                )
            self._request_channel.send_response(request, response)

        self._controller.controlled_shutdown(body.broker_id, body.broker_epoch, respond)

    def handle_alter_partition(self, request: Request) -> None:
        body = request.body_as(AlterPartitionRequest)

        def respond(response: AlterPartitionResponse) -> None:
            self._request_channel.send_response(request, response)

        self._controller.alter_partitions(body, request.header.api_version, respond)

    def handle_allocate_producer_ids(self, request: Request) -> None:
        """Brokers of Apache Kafka ask the controller; ours claim their blocks in the store."""
        body = request.body_as(AllocateProducerIdsRequest)

        def respond(response: AllocateProducerIdsResponse) -> None:
            self._request_channel.send_response(request, response)

        self._controller.allocate_producer_ids(body, respond)

    def _on_leadership_change(self, leaders: list[Partition], followers: list[Partition]) -> None:
        for partition in leaders:
            topic, index = partition.topic_partition
            if (coordinator := self._coordinators.get(topic)) is not None:
                coordinator.on_election(index, partition.leader_epoch)
        for partition in followers:
            topic, index = partition.topic_partition
            if (coordinator := self._coordinators.get(topic)) is not None:
                coordinator.on_resignation(index, partition.leader_epoch)

    def _resign_from_deleted(self, response: StopReplicaResponse) -> None:
        """A replica that is moved away is only stopped: no LeaderAndIsr says that it leads not."""
        for stopped in response.partition_errors:
            topic_partition = TopicPartition(stopped.topic_name, stopped.partition_index)
            coordinator = self._coordinators.get(stopped.topic_name)
            if (
                coordinator is not None
                and stopped.error_code == Errors.NONE.code
                and self._replica_manager.get_partition(topic_partition) is None
            ):
                coordinator.on_resignation(stopped.partition_index, None)

    def _is_stale(self, requested: int) -> bool:
        # Versions that do not carry the epoch leave it at -1.
        return requested != -1 and requested < self._controller.broker_epoch


def _partitions(body: UpdateMetadataRequest) -> set[TopicPartition]:
    """Grouped by topic since version 5."""
    grouped = {
        TopicPartition(topic.topic_name, state.partition_index)
        for topic in body.topic_states
        for state in topic.partition_states
    }
    return grouped | {
        TopicPartition(state.topic_name, state.partition_index)
        for state in body.ungrouped_partition_states
    }
