"""Metadata and DescribeTopicPartitions: which topics and brokers there are, and who leads what."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.common.errors import Errors, InvalidRequestError, InvalidTopicError
from kafkapy.common.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.security.acl import ResourceType, supported_operations
from kafkapy.common.topic import validate_topic_name
from kafkapy.common.types import INTERNAL_TOPICS, ZERO_UUID
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.server.auto_topic_creation import AutoTopicCreationManager

NO_CONTROLLER_ID = -1
# Nothing forbids any.
_ALL_TOPIC_OPERATIONS = supported_operations(ResourceType.TOPIC)


class MetadataHandler:
    """Answers from the MetadataCache; an unknown topic may be created on the way.

    Ports: kafka.server.KafkaApis.handleTopicMetadataRequest
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        metadata_cache: MetadataCache,
        auto_topic_creation: AutoTopicCreationManager,
        *,
        auto_create_topics: bool,
        cluster_id: str,
        max_describe_partitions: int,
        is_starting: Callable[[], bool],
    ) -> None:
        self._request_channel = request_channel
        self._metadata_cache = metadata_cache
        self._auto_topic_creation = auto_topic_creation
        self._auto_create_topics = auto_create_topics
        self._cluster_id = cluster_id
        self._max_describe_partitions = max_describe_partitions
        self._is_starting = is_starting

    def handle_metadata(self, request: Request) -> None:
        body = request.body_as(MetadataRequest)
        version = request.header.api_version
        listener = request.context.listener_name
        wants_all = body.topics is None or (version == 0 and not body.topics)
        names: list[str] = []
        topics: list[MetadataResponse.MetadataResponseTopic] = []
        if wants_all:
            names = list(self._metadata_cache.all_topics())
        else:
            assert body.topics is not None
            names, topics = self._resolve_names(body.topics, version)
        found = self._metadata_cache.get_topic_metadata(
            names,
            listener,
            error_unavailable_endpoints=version == 0,
            error_unavailable_listeners=version >= 6,
        )
        if body.include_topic_authorized_operations:
            for topic in found:
                topic.topic_authorized_operations = _ALL_TOPIC_OPERATIONS
        topics.extend(found)
        if not wants_all:
            found_names = {topic.name for topic in found}
            missing = [name for name in names if name not in found_names]
            topics.extend(self._missing_topics(missing, may_create=body.allow_auto_topic_creation))
        controller_id = self._metadata_cache.controller_id
        response = MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(
                    node_id=node.id, host=node.host, port=node.port, rack=node.rack
                )
                for node in self._metadata_cache.get_alive_broker_nodes(listener)
            ],
            cluster_id=self._cluster_id,
            controller_id=controller_id if controller_id is not None else NO_CONTROLLER_ID,
            topics=topics,
        )
        if body.include_cluster_authorized_operations:
            response.cluster_authorized_operations = supported_operations(ResourceType.CLUSTER)
        self._request_channel.send_response(request, response)

    def _resolve_names(
        self, wanted: list[MetadataRequest.MetadataRequestTopic], version: int
    ) -> tuple[list[str], list[MetadataResponse.MetadataResponseTopic]]:
        """The names asked for, directly or by id, and an answer for each id that is unknown."""
        names: dict[str, None] = {}
        unknown = []
        ids_to_names = (
            self._metadata_cache.topic_ids_to_names()
            if any(topic.topic_id != ZERO_UUID for topic in wanted)
            else {}
        )
        for topic in wanted:
            if topic.topic_id == ZERO_UUID:
                if topic.name is None:
                    raise InvalidRequestError("A metadata request names neither topic nor id")
                names[topic.name] = None
            elif version < 12:
                raise InvalidRequestError(
                    f"Metadata v{version} cannot ask by topic id; v12 is the first that can"
                )
            elif topic.topic_id in ids_to_names:
                names[ids_to_names[topic.topic_id]] = None
            else:
                unknown.append(
                    MetadataResponse.MetadataResponseTopic(
                        error_code=Errors.UNKNOWN_TOPIC_ID.code,
                        name=None,
                        topic_id=topic.topic_id,
                    )
                )
        return list(names), unknown

    def _missing_topics(
        self, names: list[str], *, may_create: bool
    ) -> list[MetadataResponse.MetadataResponseTopic]:
        if self._is_starting():
            # The controller has yet to tell of the topics there are: a client must not take them
            # for deleted, which librdkafka does at once.
            errors = {name: _name_error(name) or Errors.LEADER_NOT_AVAILABLE for name in names}
        elif may_create and self._auto_create_topics:
            errors = self._auto_topic_creation.create_topics(names)
        else:
            errors = {
                name: _name_error(name) or Errors.UNKNOWN_TOPIC_OR_PARTITION for name in names
            }
        return [
            MetadataResponse.MetadataResponseTopic(
                error_code=error.code, name=name, is_internal=name in INTERNAL_TOPICS
            )
            for name, error in errors.items()
        ]

    def handle_describe_topic_partitions(self, request: Request) -> None:
        """Ports: kafka.server.handlers.DescribeTopicPartitionsRequestHandler"""
        body = request.body_as(DescribeTopicPartitionsRequest)
        cursor = body.cursor
        if cursor is not None and cursor.partition_index < 0:
            raise InvalidRequestError(
                f"The cursor names partition {cursor.partition_index} of {cursor.topic_name}"
            )
        names = sorted({topic.name for topic in body.topics}) or sorted(
            self._metadata_cache.all_topics()
        )
        if cursor is not None:
            if body.topics and cursor.topic_name not in names:
                raise InvalidRequestError(
                    f"The cursor names topic {cursor.topic_name}, which is not asked for"
                )
            names = [name for name in names if name >= cursor.topic_name]
        response = self._metadata_cache.describe_topic_partitions(
            names,
            request.context.listener_name,
            first_partition=cursor.partition_index
            if cursor is not None and names[:1] == [cursor.topic_name]
            else 0,
            max_partitions=max(
                1, min(body.response_partition_limit, self._max_describe_partitions)
            ),
            ignore_missing=not body.topics,
        )
        for topic in response.topics:
            topic.topic_authorized_operations = _ALL_TOPIC_OPERATIONS
        self._request_channel.send_response(request, response)


def _name_error(name: str) -> Errors | None:
    try:
        validate_topic_name(name)
    except InvalidTopicError:
        return Errors.INVALID_TOPIC_EXCEPTION
    return None
