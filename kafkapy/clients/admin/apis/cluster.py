"""The brokers: who they are, what they support, what is on their disks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import kafkapy
from kafkapy.clients.admin.admin_api_handler import (
    AdminApiHandler,
    ApiResult,
    SingleHandler,
    raise_for,
)
from kafkapy.clients.admin.cluster_description import (
    ClusterDescription,
    FeatureMetadata,
    FeatureUpdate,
    LogDirDescription,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
    UpgradeType,
    VersionRange,
)
from kafkapy.clients.admin.lookup_strategy import at_any_broker, at_broker, at_controller
from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.metadata import metadata_request_for
from kafkapy.clients.network_client import CLIENT_SOFTWARE_NAME
from kafkapy.common.errors import Errors, KafkaError, UnsupportedVersionError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.common.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkapy.common.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.protocol.messages.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kafkapy.common.security.acl import authorized_operations
from kafkapy.common.types import TopicPartition, partitions_by_topic
from kafkapy.metadata.broker import Node

_FIRST_METADATA_WITH_OPERATIONS = 8
_LAST_METADATA_WITH_OPERATIONS = 10
_FIRST_UPDATE_WITH_TYPE = 1
_NO_EPOCH = -1


class BrokersHandler(SingleHandler[list[int], MetadataResponse]):
    """The ids of the brokers that are up."""

    call_name = "list_brokers"

    def __init__(self) -> None:
        super().__init__(at_any_broker())

    def build(self, timeout_ms: int) -> VersionedRequest:
        return metadata_request_for((), allow_auto_topic_creation=True)

    def read(self, response: MetadataResponse) -> list[int]:
        return sorted(broker.node_id for broker in response.brokers)


class DescribeClusterHandler(
    SingleHandler[ClusterDescription, DescribeClusterResponse | MetadataResponse]
):
    """By the API of its own, or by Metadata where brokers are too old to have that."""

    call_name = "describe_cluster"

    def __init__(self, *, include_authorized_operations: bool) -> None:
        super().__init__(at_any_broker())
        self._include_authorized_operations = include_authorized_operations
        self._uses_metadata = False

    def build(self, timeout_ms: int) -> VersionedRequest:
        if not self._uses_metadata:
            return VersionedRequest(
                DescribeClusterRequest(
                    include_cluster_authorized_operations=self._include_authorized_operations
                )
            )
        if not self._include_authorized_operations:
            return metadata_request_for((), allow_auto_topic_creation=True)
        return VersionedRequest(
            MetadataRequest(topics=[], include_cluster_authorized_operations=True),
            min_version=_FIRST_METADATA_WITH_OPERATIONS,
            max_version=_LAST_METADATA_WITH_OPERATIONS,
        )

    def read(self, response: DescribeClusterResponse | MetadataResponse) -> ClusterDescription:
        if isinstance(response, DescribeClusterResponse):
            raise_for(response.error_code, response.error_message)
            nodes = {
                broker.broker_id: Node(broker.broker_id, broker.host, broker.port, broker.rack)
                for broker in response.brokers
            }
        else:
            nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in response.brokers}
        return ClusterDescription(
            response.cluster_id,
            tuple(nodes[node_id] for node_id in sorted(nodes)),
            nodes.get(response.controller_id),
            authorized_operations(response.cluster_authorized_operations),
        )

    def handle_unsupported_version(
        self, keys: Sequence[None], error: UnsupportedVersionError
    ) -> dict[None, KafkaError]:
        if self._uses_metadata:
            return super().handle_unsupported_version(keys, error)
        self._uses_metadata = True
        return {}


class ApiVersionsHandler(AdminApiHandler[int, NodeApiVersions, ApiVersionsResponse]):
    """What each broker supports."""

    call_name = "api_versions"

    def __init__(self) -> None:
        super().__init__(at_broker(lambda broker_id: broker_id), is_batched=False)

    def build_request(self, keys: Sequence[int], timeout_ms: int) -> VersionedRequest:
        return _api_versions_request()

    def handle_response(
        self, keys: Sequence[int], response: ApiVersionsResponse, node: Node
    ) -> ApiResult[int, NodeApiVersions]:
        result = self.new_result()
        result.file(keys[0], response.error_code, NodeApiVersions.from_response(response))
        return result


class DescribeFeaturesHandler(SingleHandler[FeatureMetadata, ApiVersionsResponse]):
    call_name = "describe_features"

    def __init__(self) -> None:
        super().__init__(at_any_broker())

    def build(self, timeout_ms: int) -> VersionedRequest:
        return _api_versions_request()

    def read(self, response: ApiVersionsResponse) -> FeatureMetadata:
        raise_for(response.error_code)
        epoch = response.finalized_features_epoch
        return FeatureMetadata(
            {
                feature.name: VersionRange(feature.min_version_level, feature.max_version_level)
                for feature in response.finalized_features
            },
            None if epoch == _NO_EPOCH else epoch,
            {
                feature.name: VersionRange(feature.min_version, feature.max_version)
                for feature in response.supported_features
            },
        )


class UpdateFeaturesHandler(AdminApiHandler[str, None, UpdateFeaturesResponse]):
    call_name = "update_features"
    unmapping = frozenset({Errors.NOT_CONTROLLER})

    def __init__(self, updates: Mapping[str, FeatureUpdate], *, validate_only: bool) -> None:
        super().__init__(at_controller())
        self._updates = updates
        self._validate_only = validate_only

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        def build(version: int) -> UpdateFeaturesRequest:
            has_types = version >= _FIRST_UPDATE_WITH_TYPE
            if self._validate_only and not has_types:
                raise UnsupportedVersionError("The broker cannot validate updates of features")
            return UpdateFeaturesRequest(
                timeout_ms=timeout_ms,
                feature_updates=[self._update(key, has_types=has_types) for key in keys],
                validate_only=self._validate_only,
            )

        return VersionedRequest(build, api_key=ApiKeys.UPDATE_FEATURES)

    def handle_response(
        self, keys: Sequence[str], response: UpdateFeaturesResponse, node: Node
    ) -> ApiResult[str, None]:
        result = self.new_result()
        error = Errors.for_code(response.error_code)
        if error is not Errors.NONE:
            result.fail_all(keys, error, response.error_message)
            return result
        for feature in response.results:
            result.file(feature.feature, feature.error_code, None, feature.error_message)
        return result

    def _update(self, feature: str, *, has_types: bool) -> UpdateFeaturesRequest.FeatureUpdateKey:
        update = self._updates[feature]
        key = UpdateFeaturesRequest.FeatureUpdateKey(
            feature=feature, max_version_level=update.max_version_level
        )
        if has_types:
            key.upgrade_type = update.upgrade_type
        else:
            key.allow_downgrade = update.upgrade_type is not UpgradeType.UPGRADE
        return key


class DescribeLogDirsHandler(
    AdminApiHandler[int, dict[str, LogDirDescription], DescribeLogDirsResponse]
):
    """By broker, then by path."""

    call_name = "describe_log_dirs"

    def __init__(self) -> None:
        super().__init__(at_broker(lambda broker_id: broker_id), is_batched=False)

    def build_request(self, keys: Sequence[int], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(DescribeLogDirsRequest(topics=None))

    def handle_response(
        self, keys: Sequence[int], response: DescribeLogDirsResponse, node: Node
    ) -> ApiResult[int, dict[str, LogDirDescription]]:
        result = self.new_result()
        if response.results or response.error_code != Errors.NONE.code:
            described = {dir_.log_dir: _log_dir(dir_) for dir_ in response.results}
            result.file(keys[0], response.error_code, described)
        else:
            # What an older broker answers to those who may not ask.
            result.fail(keys[0], Errors.CLUSTER_AUTHORIZATION_FAILED)
        return result


class DescribeReplicaLogDirsHandler(
    AdminApiHandler[TopicPartitionReplica, ReplicaLogDirInfo, DescribeLogDirsResponse]
):
    """Where single replicas are."""

    call_name = "describe_replica_log_dirs"

    def __init__(self) -> None:
        super().__init__(at_broker(lambda replica: replica.broker_id))

    def build_request(
        self, keys: Sequence[TopicPartitionReplica], timeout_ms: int
    ) -> VersionedRequest:
        topics = partitions_by_topic(key.topic_partition for key in keys)
        return VersionedRequest(
            DescribeLogDirsRequest(
                topics=[
                    DescribeLogDirsRequest.DescribableLogDirTopic(
                        topic=topic, partitions=partitions
                    )
                    for topic, partitions in topics.items()
                ]
            )
        )

    def handle_response(
        self,
        keys: Sequence[TopicPartitionReplica],
        response: DescribeLogDirsResponse,
        node: Node,
    ) -> ApiResult[TopicPartitionReplica, ReplicaLogDirInfo]:
        result = self.new_result()
        error = Errors.for_code(response.error_code)
        if error is not Errors.NONE:
            result.fail_all(keys, error)
            return result
        for key in keys:
            result.complete(key, _replica_log_dir(key.topic_partition, response.results))
        return result


class AlterReplicaLogDirsHandler(
    AdminApiHandler[TopicPartitionReplica, None, AlterReplicaLogDirsResponse]
):
    """Moves replicas to other directories of their brokers."""

    call_name = "alter_replica_log_dirs"

    def __init__(self, paths: Mapping[TopicPartitionReplica, str]) -> None:
        super().__init__(at_broker(lambda replica: replica.broker_id))
        self._paths = paths

    def build_request(
        self, keys: Sequence[TopicPartitionReplica], timeout_ms: int
    ) -> VersionedRequest:
        by_path: dict[str, list[TopicPartition]] = {}
        for key in keys:
            by_path.setdefault(self._paths[key], []).append(key.topic_partition)
        return VersionedRequest(
            AlterReplicaLogDirsRequest(
                dirs=[
                    AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                        path=path,
                        topics=[
                            AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(
                                name=topic, partitions=indexes
                            )
                            for topic, indexes in partitions_by_topic(partitions).items()
                        ],
                    )
                    for path, partitions in by_path.items()
                ]
            )
        )

    def handle_response(
        self,
        keys: Sequence[TopicPartitionReplica],
        response: AlterReplicaLogDirsResponse,
        node: Node,
    ) -> ApiResult[TopicPartitionReplica, None]:
        result = self.new_result()
        for topic in response.results:
            for moved in topic.partitions:
                key = TopicPartitionReplica(topic.topic_name, moved.partition_index, node.id)
                result.file(key, moved.error_code, None)
        return result


def _api_versions_request() -> VersionedRequest:
    return VersionedRequest(
        ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME,
            client_software_version=kafkapy.__version__,
        )
    )


def _log_dir(log_dir: DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDirDescription:
    error = Errors.for_code(log_dir.error_code)
    return LogDirDescription(
        None if error is Errors.NONE else error.exception(f"{log_dir.log_dir}: {error.message}"),
        {
            TopicPartition(topic.name, partition.partition_index): ReplicaInfo(
                partition.partition_size, partition.offset_lag, partition.is_future_key
            )
            for topic in log_dir.topics
            for partition in topic.partitions
        },
        log_dir.total_bytes,
        log_dir.usable_bytes,
    )


def _replica_log_dir(
    partition: TopicPartition, log_dirs: Iterable[DescribeLogDirsResponse.DescribeLogDirsResult]
) -> ReplicaLogDirInfo:
    found = ReplicaLogDirInfo()
    for log_dir in log_dirs:
        info = _log_dir(log_dir).replica_infos.get(partition)
        if info is None:
            continue
        if info.is_future:
            found = replace(
                found, future_log_dir=log_dir.log_dir, future_offset_lag=info.offset_lag
            )
        else:
            found = replace(
                found, current_log_dir=log_dir.log_dir, current_offset_lag=info.offset_lag
            )
    return found
