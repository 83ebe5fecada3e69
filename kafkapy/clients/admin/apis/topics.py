"""Topics: making, deleting, describing, listing and growing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from kafkapy.clients.admin.admin_api_handler import AdminApiHandler, ApiResult, SingleHandler
from kafkapy.clients.admin.config_entry import ConfigEntry
from kafkapy.clients.admin.lookup_strategy import at_any_broker, at_controller
from kafkapy.clients.admin.new_topic import BROKER_DEFAULT, NewPartitions, NewTopic
from kafkapy.clients.admin.topic_description import (
    TopicDescription,
    TopicListing,
    TopicMetadataAndConfig,
    TopicPartitionInfo,
)
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.metadata import metadata_request_for
from kafkapy.common.config_resource import ConfigSource
from kafkapy.common.errors import Errors, UnsupportedVersionError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
)
from kafkapy.common.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkapy.common.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.security.acl import authorized_operations
from kafkapy.metadata.broker import Node

_FIRST_CREATE_WITH_DEFAULTS = 4
_FIRST_CREATE_WITH_VALIDATION = 1
_FIRST_DELETE_BY_ID = 6
_FIRST_METADATA_BY_ID = 12
_FIRST_METADATA_WITH_OPERATIONS = 8
_FIRST_METADATA_WITHOUT_CREATION = 4

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R", bound=Message)


class _TopicChangeHandler(AdminApiHandler[K, V, R]):
    """A change by the controller, which has a quota for such (KIP-599)."""

    unmapping = frozenset({Errors.NOT_CONTROLLER})

    def __init__(self, *, retry_on_quota_violation: bool) -> None:
        super().__init__(at_controller())
        if retry_on_quota_violation:
            self.retriable = frozenset({Errors.THROTTLING_QUOTA_EXCEEDED})


class CreateTopicsHandler(_TopicChangeHandler[str, TopicMetadataAndConfig, CreateTopicsResponse]):
    call_name = "create_topics"

    def __init__(
        self,
        topics: Mapping[str, NewTopic],
        *,
        validate_only: bool,
        retry_on_quota_violation: bool,
    ) -> None:
        super().__init__(retry_on_quota_violation=retry_on_quota_violation)
        self._topics = topics
        self._validate_only = validate_only

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        topics = [self._topics[key] for key in keys]
        needs_defaults = any(
            topic.replica_assignments is None
            and BROKER_DEFAULT in (topic.num_partitions, topic.replication_factor)
            for topic in topics
        )
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics],
            timeout_ms=timeout_ms,
            validate_only=self._validate_only,
        )
        if needs_defaults:
            return VersionedRequest(request, min_version=_FIRST_CREATE_WITH_DEFAULTS)
        if self._validate_only:
            return VersionedRequest(request, min_version=_FIRST_CREATE_WITH_VALIDATION)
        return VersionedRequest(request)

    def handle_response(
        self, keys: Sequence[str], response: CreateTopicsResponse, node: Node
    ) -> ApiResult[str, TopicMetadataAndConfig]:
        result = self.new_result()
        for topic in response.topics:
            config = None
            if topic.configs is not None and topic.topic_config_error_code == Errors.NONE.code:
                config = {
                    entry.name: ConfigEntry(
                        entry.name,
                        entry.value,
                        ConfigSource(entry.config_source),
                        entry.is_sensitive,
                        entry.read_only,
                    )
                    for entry in topic.configs
                }
            created = TopicMetadataAndConfig(
                topic.topic_id, topic.num_partitions, topic.replication_factor, config
            )
            result.file(topic.name, topic.error_code, created, topic.error_message)
        return result


class DeleteTopicsHandler(_TopicChangeHandler[str | UUID, None, DeleteTopicsResponse]):
    call_name = "delete_topics"

    def build_request(self, keys: Sequence[str | UUID], timeout_ms: int) -> VersionedRequest:
        def build(version: int) -> DeleteTopicsRequest:
            if version >= _FIRST_DELETE_BY_ID:
                return DeleteTopicsRequest(
                    topics=[
                        DeleteTopicsRequest.DeleteTopicState(topic_id=key)
                        if isinstance(key, UUID)
                        else DeleteTopicsRequest.DeleteTopicState(name=key)
                        for key in keys
                    ],
                    timeout_ms=timeout_ms,
                )
            names = [key for key in keys if isinstance(key, str)]
            if len(names) < len(keys):
                raise UnsupportedVersionError("The broker cannot delete topics by id")
            return DeleteTopicsRequest(topic_names=names, timeout_ms=timeout_ms)

        return VersionedRequest(build, api_key=ApiKeys.DELETE_TOPICS)

    def handle_response(
        self, keys: Sequence[str | UUID], response: DeleteTopicsResponse, node: Node
    ) -> ApiResult[str | UUID, None]:
        result = self.new_result()
        wanted = set(keys)
        for topic in response.responses:
            # The response to a deletion by id has the name too, and the other way round.
            key = topic.topic_id if topic.topic_id in wanted else topic.name
            if key is not None:
                result.file(key, topic.error_code, None, topic.error_message)
        return result


class CreatePartitionsHandler(_TopicChangeHandler[str, None, CreatePartitionsResponse]):
    call_name = "create_partitions"

    def __init__(
        self,
        partitions: Mapping[str, NewPartitions],
        *,
        validate_only: bool,
        retry_on_quota_violation: bool,
    ) -> None:
        super().__init__(retry_on_quota_violation=retry_on_quota_violation)
        self._partitions = partitions
        self._validate_only = validate_only

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        topics = []
        for name in keys:
            wanted = self._partitions[name]
            assignments = None
            if wanted.new_assignments is not None:
                assignments = [
                    CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=list(brokers))
                    for brokers in wanted.new_assignments
                ]
            topics.append(
                CreatePartitionsRequest.CreatePartitionsTopic(
                    name=name, count=wanted.total_count, assignments=assignments
                )
            )
        return VersionedRequest(
            CreatePartitionsRequest(
                topics=topics, timeout_ms=timeout_ms, validate_only=self._validate_only
            )
        )

    def handle_response(
        self, keys: Sequence[str], response: CreatePartitionsResponse, node: Node
    ) -> ApiResult[str, None]:
        result = self.new_result()
        for topic in response.results:
            result.file(topic.name, topic.error_code, None, topic.error_message)
        return result


class DescribeTopicsHandler(AdminApiHandler[str | UUID, TopicDescription, MetadataResponse]):
    """By names, or by ids, in one call."""

    call_name = "describe_topics"

    def __init__(self, *, include_authorized_operations: bool) -> None:
        super().__init__(at_any_broker())
        self._include_authorized_operations = include_authorized_operations

    def build_request(self, keys: Sequence[str | UUID], timeout_ms: int) -> VersionedRequest:
        min_version = _FIRST_METADATA_WITHOUT_CREATION
        if self._include_authorized_operations:
            min_version = _FIRST_METADATA_WITH_OPERATIONS
        if any(isinstance(key, UUID) for key in keys):
            min_version = _FIRST_METADATA_BY_ID
        return VersionedRequest(
            MetadataRequest(
                topics=[
                    MetadataRequest.MetadataRequestTopic(topic_id=key, name=None)
                    if isinstance(key, UUID)
                    else MetadataRequest.MetadataRequestTopic(name=key)
                    for key in keys
                ],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=self._include_authorized_operations,
            ),
            min_version=min_version,
        )

    def handle_response(
        self, keys: Sequence[str | UUID], response: MetadataResponse, node: Node
    ) -> ApiResult[str | UUID, TopicDescription]:
        result = self.new_result()
        nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        by_key: dict[str | UUID, MetadataResponse.MetadataResponseTopic] = {}
        for topic in response.topics:
            if topic.name is not None:
                by_key[topic.name] = topic
            by_key[topic.topic_id] = topic
        for key in keys:
            found = by_key.get(key)
            if found is None:
                result.fail(key, Errors.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                result.file(key, found.error_code, _description(found, nodes))
        return result


class ListTopicsHandler(SingleHandler[dict[str, TopicListing], MetadataResponse]):
    call_name = "list_topics"

    def __init__(self, *, list_internal: bool) -> None:
        super().__init__(at_any_broker())
        self._list_internal = list_internal

    def build(self, timeout_ms: int) -> VersionedRequest:
        return metadata_request_for(None, allow_auto_topic_creation=True)

    def read(self, response: MetadataResponse) -> dict[str, TopicListing]:
        return {
            topic.name: TopicListing(topic.name, topic.topic_id, topic.is_internal)
            for topic in response.topics
            if topic.name is not None and (self._list_internal or not topic.is_internal)
        }


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(
                partition_index=partition, broker_ids=list(brokers)
            )
            for partition, brokers in (topic.replica_assignments or {}).items()
        ],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
            for name, value in topic.topic_configs.items()
        ],
    )


def _description(
    topic: MetadataResponse.MetadataResponseTopic, nodes: Mapping[int, Node]
) -> TopicDescription:
    partitions = [
        TopicPartitionInfo(
            partition.partition_index,
            nodes.get(partition.leader_id),
            _nodes(partition.replica_nodes, nodes),
            _nodes(partition.isr_nodes, nodes),
        )
        for partition in topic.partitions
    ]
    return TopicDescription(
        topic.name or "",
        topic.topic_id,
        topic.is_internal,
        tuple(sorted(partitions, key=lambda info: info.partition)),
        authorized_operations(topic.topic_authorized_operations),
    )


def _nodes(ids: Sequence[int], nodes: Mapping[int, Node]) -> tuple[Node, ...]:
    """A broker that is down is known by its id alone."""
    return tuple(nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids)
