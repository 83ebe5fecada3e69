"""What the controller and the brokers say to each other."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkapy.common.errors import Errors
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
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.server.admin_manager import AdminManager

log = logging.getLogger(__name__)


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
        on_metadata_update: Callable[[], None],
    ) -> None:
        self._request_channel = request_channel
        self._replica_manager = replica_manager
        self._controller = controller
        self._admin_manager = admin_manager
        self._on_metadata_update = on_metadata_update

    def handle_leader_and_isr(self, request: Request) -> None:
        body = request.body_as(LeaderAndIsrRequest)
        if self._is_stale(body.broker_epoch):
            response = LeaderAndIsrResponse(error_code=Errors.STALE_BROKER_EPOCH.code)
        else:
            response = self._replica_manager.become_leader_or_follower(
                request.header.correlation_id, body, request.header.api_version
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
        self._request_channel.send_response(request, response)

    def handle_update_metadata(self, request: Request) -> None:
        body = request.body_as(UpdateMetadataRequest)
        if self._is_stale(body.broker_epoch):
            response = UpdateMetadataResponse(error_code=Errors.STALE_BROKER_EPOCH.code)
        else:
            self._replica_manager.maybe_update_metadata_cache(request.header.correlation_id, body)
            topics = {state.topic_name for state in body.topic_states} | {
                state.topic_name for state in body.ungrouped_partition_states
            }
            for topic in topics:
                self._admin_manager.try_complete_delayed_topic_operations(topic)
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

    def _is_stale(self, requested: int) -> bool:
        # Versions that do not carry the epoch leave it at -1.
        return requested != -1 and requested < self._controller.broker_epoch
