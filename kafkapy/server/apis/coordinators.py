"""FindCoordinator: which broker looks after a group or a transactional id."""

from __future__ import annotations

from kafkapy.common.errors import Errors, InvalidRequestError
from kafkapy.common.protocol.coordinator_type import CoordinatorType
from kafkapy.common.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.metadata.broker import NO_NODE, Node
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.server.auto_topic_creation import AutoTopicCreationManager
from kafkapy.utils.java_hash import java_partition_for

_FIRST_VERSION_WITH_SEVERAL_KEYS = 4

_TOPICS: dict[int, str] = {
    CoordinatorType.GROUP: CONSUMER_OFFSETS_TOPIC,
    CoordinatorType.TRANSACTION: TRANSACTION_STATE_TOPIC,
}


class CoordinatorsHandler:
    """A group belongs to one partition of __consumer_offsets, and so to that partition's leader;
    a transactional id to one of __transaction_state.

    The topics are created when they are first needed.

    Ports: kafka.server.KafkaApis.handleFindCoordinatorRequest
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        metadata_cache: MetadataCache,
        auto_topic_creation: AutoTopicCreationManager,
    ) -> None:
        self._request_channel = request_channel
        self._metadata_cache = metadata_cache
        self._auto_topic_creation = auto_topic_creation

    def handle_find_coordinator(self, request: Request) -> None:
        body = request.body_as(FindCoordinatorRequest)
        listener = request.context.listener_name
        if request.header.api_version >= _FIRST_VERSION_WITH_SEVERAL_KEYS:
            response = FindCoordinatorResponse(
                coordinators=[
                    self._coordinator(key, body.key_type, listener) for key in body.coordinator_keys
                ]
            )
        else:
            found = self._coordinator(body.key, body.key_type, listener)
            response = FindCoordinatorResponse(
                error_code=found.error_code,
                error_message=found.error_message,
                node_id=found.node_id,
                host=found.host,
                port=found.port,
            )
        self._request_channel.send_response(request, response)

    def _coordinator(
        self, key: str, key_type: int, listener: str
    ) -> FindCoordinatorResponse.Coordinator:
        topic = _TOPICS.get(key_type)
        if topic is None:
            raise InvalidRequestError(f"There is no coordinator of type {key_type} on this broker")
        node = self._leader(key, topic, listener)
        error = Errors.NONE if node is not None else Errors.COORDINATOR_NOT_AVAILABLE
        node = node or NO_NODE
        return FindCoordinatorResponse.Coordinator(
            key=key,
            node_id=node.id,
            host=node.host,
            port=node.port,
            error_code=error.code,
            error_message=None if error is Errors.NONE else error.message,
        )

    def _leader(self, key: str, topic: str, listener: str) -> Node | None:
        partitions = self._metadata_cache.num_partitions(topic)
        if partitions is None:
            self._auto_topic_creation.create_topics([topic])
            return None
        node = self._metadata_cache.get_partition_leader_endpoint(
            topic, java_partition_for(key, partitions), listener
        )
        return node if node is not None and node != NO_NODE else None
