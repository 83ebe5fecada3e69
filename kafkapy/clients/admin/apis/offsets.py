"""Offsets and records of partitions, as their leaders know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafkapy.clients.admin.admin_api_handler import (
    INVALID_METADATA_ERRORS,
    RETRIABLE_ERRORS,
    AdminApiHandler,
    ApiResult,
)
from kafkapy.clients.admin.offset_spec import IsolationLevel, ListOffsetsResultInfo, OffsetSpec
from kafkapy.clients.admin.partition_leader_strategy import PartitionLeaderStrategy
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.errors import KafkaError, UnsupportedVersionError
from kafkapy.common.protocol.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.common.types import TopicPartition, partitions_by_topic
from kafkapy.metadata.broker import Node

_CONSUMER_REPLICA_ID = -1
_FIRST_VERSION_WITH_ONE_OFFSET = 1
_FIRST_VERSION_WITH_ISOLATION = 2
_FIRST_VERSION_OF_SPEC = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
}


class ListOffsetsHandler(
    AdminApiHandler[TopicPartition, ListOffsetsResultInfo, ListOffsetsResponse]
):
    """Ports: org.apache.kafka.clients.admin.internals.ListOffsetsHandler"""

    call_name = "list_offsets"
    retriable = RETRIABLE_ERRORS
    unmapping = INVALID_METADATA_ERRORS

    def __init__(
        self, specs: Mapping[TopicPartition, int], *, isolation_level: IsolationLevel
    ) -> None:
        super().__init__(PartitionLeaderStrategy())
        self._specs = specs
        self._isolation_level = isolation_level

    def build_request(self, keys: Sequence[TopicPartition], timeout_ms: int) -> VersionedRequest:
        min_version = _FIRST_VERSION_WITH_ONE_OFFSET
        if self._isolation_level is IsolationLevel.READ_COMMITTED:
            min_version = _FIRST_VERSION_WITH_ISOLATION
        min_version = max(min_version, *map(self._first_version, keys))
        return VersionedRequest(
            ListOffsetsRequest(
                replica_id=_CONSUMER_REPLICA_ID,
                isolation_level=self._isolation_level,
                topics=[
                    ListOffsetsRequest.ListOffsetsTopic(
                        name=topic,
                        partitions=[
                            ListOffsetsRequest.ListOffsetsPartition(
                                partition_index=partition,
                                timestamp=self._specs[TopicPartition(topic, partition)],
                            )
                            for partition in partitions
                        ],
                    )
                    for topic, partitions in partitions_by_topic(keys).items()
                ],
                timeout_ms=timeout_ms,
            ),
            min_version=min_version,
        )

    def handle_response(
        self, keys: Sequence[TopicPartition], response: ListOffsetsResponse, node: Node
    ) -> ApiResult[TopicPartition, ListOffsetsResultInfo]:
        result = self.new_result()
        for topic in response.topics:
            for found in topic.partitions:
                epoch = found.leader_epoch if found.leader_epoch >= 0 else None
                result.file(
                    TopicPartition(topic.name, found.partition_index),
                    found.error_code,
                    ListOffsetsResultInfo(found.offset, found.timestamp, epoch),
                )
        return result

    def handle_unsupported_version(
        self, keys: Sequence[TopicPartition], error: UnsupportedVersionError
    ) -> dict[TopicPartition, KafkaError]:
        # What any broker can do is asked for again, without the rest.
        newer = [key for key in keys if self._first_version(key) > _FIRST_VERSION_WITH_ONE_OFFSET]
        return dict.fromkeys(newer or keys, error)

    def _first_version(self, key: TopicPartition) -> int:
        spec = self._specs[key]
        if spec >= 0:
            return _FIRST_VERSION_WITH_ONE_OFFSET
        return _FIRST_VERSION_OF_SPEC.get(OffsetSpec(spec), _FIRST_VERSION_WITH_ONE_OFFSET)


class DeleteRecordsHandler(AdminApiHandler[TopicPartition, int, DeleteRecordsResponse]):
    """The value is the first offset that is left.

    Ports: org.apache.kafka.clients.admin.internals.DeleteRecordsHandler
    """

    call_name = "delete_records"
    retriable = RETRIABLE_ERRORS
    unmapping = INVALID_METADATA_ERRORS

    def __init__(self, before_offsets: Mapping[TopicPartition, int]) -> None:
        super().__init__(PartitionLeaderStrategy())
        self._before_offsets = before_offsets

    def build_request(self, keys: Sequence[TopicPartition], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            DeleteRecordsRequest(
                topics=[
                    DeleteRecordsRequest.DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            DeleteRecordsRequest.DeleteRecordsPartition(
                                partition_index=partition,
                                offset=self._before_offsets[TopicPartition(topic, partition)],
                            )
                            for partition in partitions
                        ],
                    )
                    for topic, partitions in partitions_by_topic(keys).items()
                ],
                timeout_ms=timeout_ms,
            )
        )

    def handle_response(
        self, keys: Sequence[TopicPartition], response: DeleteRecordsResponse, node: Node
    ) -> ApiResult[TopicPartition, int]:
        result = self.new_result()
        for topic in response.topics:
            for deleted in topic.partitions:
                key = TopicPartition(topic.name, deleted.partition_index)
                result.file(key, deleted.error_code, deleted.low_watermark)
        return result
