"""Offsets by time and epoch, and cutting the head off a log."""

from __future__ import annotations

import logging

from kafkapy.common.errors import ApiError, Errors
from kafkapy.common.protocol.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.common.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.replication.delayed_delete_records import DeleteRecordsPartitionResult
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.storage.fetch_isolation import FetchIsolation

log = logging.getLogger(__name__)

_LATEST, _EARLIEST, _MAX_TIMESTAMP, _EARLIEST_LOCAL, _LATEST_TIERED = -1, -2, -3, -4, -5
# The version of ListOffsets from which each negative timestamp has a meaning.
_FIRST_VERSIONS = {
    _LATEST: 0,
    _EARLIEST: 0,
    _MAX_TIMESTAMP: 7,
    _EARLIEST_LOCAL: 8,
    _LATEST_TIERED: 9,
}
_NEVER = 0x7FFF
_READ_COMMITTED = 1
_CONSUMER_REPLICA_ID = -1
_DEBUGGING_REPLICA_ID = -2


class OffsetsHandler:
    """Ports: kafka.server.KafkaApis.handleListOffsetRequest"""

    def __init__(
        self,
        request_channel: RequestChannel,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
    ) -> None:
        self._request_channel = request_channel
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache

    def handle_list_offsets(self, request: Request) -> None:
        body = request.body_as(ListOffsetsRequest)
        version = request.header.api_version
        seen: set[TopicPartition] = set()
        repeated: set[TopicPartition] = set()
        for topic in body.topics:
            for wanted in topic.partitions:
                partition = TopicPartition(topic.name, wanted.partition_index)
                (repeated if partition in seen else seen).add(partition)
        self._request_channel.send_response(
            request,
            ListOffsetsResponse(
                topics=[
                    ListOffsetsResponse.ListOffsetsTopicResponse(
                        name=topic.name,
                        partitions=[
                            self._list_offset_or_error(
                                TopicPartition(topic.name, wanted.partition_index),
                                wanted,
                                body,
                                version,
                                repeated=repeated,
                            )
                            for wanted in topic.partitions
                        ],
                    )
                    for topic in body.topics
                ]
            ),
        )

    def _list_offset_or_error(
        self,
        partition: TopicPartition,
        wanted: ListOffsetsRequest.ListOffsetsPartition,
        body: ListOffsetsRequest,
        version: int,
        *,
        repeated: set[TopicPartition],
    ) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
        if partition in repeated and version > 0:
            error = Errors.INVALID_REQUEST
        elif wanted.timestamp < 0 and version < _FIRST_VERSIONS.get(wanted.timestamp, _NEVER):
            error = Errors.UNSUPPORTED_VERSION
        elif not self._metadata_cache.contains(partition):
            error = Errors.UNKNOWN_TOPIC_OR_PARTITION
        else:
            try:
                return self._list_offset(partition, wanted, body, version)
            except ApiError as e:
                log.debug("The offset of %s could not be found: %s", partition, e)
                error = Errors.for_exception(e)
                if error is Errors.OFFSET_NOT_AVAILABLE and version < 5:
                    # Not known to older clients; this makes them ask again.
                    error = Errors.LEADER_NOT_AVAILABLE
        return ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=partition.partition, error_code=error.code
        )

    def _list_offset(
        self,
        partition: TopicPartition,
        wanted: ListOffsetsRequest.ListOffsetsPartition,
        body: ListOffsetsRequest,
        version: int,
    ) -> ListOffsetsResponse.ListOffsetsPartitionResponse:
        from_consumer = body.replica_id == _CONSUMER_REPLICA_ID
        if version == 0:
            return ListOffsetsResponse.ListOffsetsPartitionResponse(
                partition_index=partition.partition,
                old_style_offsets=self._replica_manager.legacy_fetch_offsets_for_timestamp(
                    partition,
                    timestamp=wanted.timestamp,
                    max_num_offsets=wanted.max_num_offsets,
                    is_from_consumer=from_consumer,
                    fetch_only_from_leader=body.replica_id != _DEBUGGING_REPLICA_ID,
                ),
            )
        found = self._replica_manager.fetch_offset_for_timestamp(
            partition,
            timestamp=wanted.timestamp,
            isolation=(
                FetchIsolation.TXN_COMMITTED
                if body.isolation_level == _READ_COMMITTED
                else FetchIsolation.HIGH_WATERMARK
            )
            if from_consumer
            else None,
            current_leader_epoch=wanted.current_leader_epoch
            if wanted.current_leader_epoch >= 0
            else None,
            fetch_only_from_leader=body.replica_id != _DEBUGGING_REPLICA_ID,
        )
        answer = ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=partition.partition
        )
        if found is not None:
            answer.timestamp = found.timestamp
            answer.offset = found.offset
            if version >= 4 and found.leader_epoch is not None:
                answer.leader_epoch = found.leader_epoch
        return answer

    def handle_offset_for_leader_epoch(self, request: Request) -> None:
        body = request.body_as(OffsetForLeaderEpochRequest)
        self._request_channel.send_response(
            request,
            OffsetForLeaderEpochResponse(
                topics=[
                    OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                        topic=topic.topic,
                        partitions=[
                            self._epoch_end_offset(TopicPartition(topic.topic, p.partition), p)
                            for p in topic.partitions
                        ],
                    )
                    for topic in body.topics
                ]
            ),
        )

    def _epoch_end_offset(
        self,
        partition: TopicPartition,
        wanted: OffsetForLeaderEpochRequest.OffsetForLeaderPartition,
    ) -> OffsetForLeaderEpochResponse.EpochEndOffset:
        answer = OffsetForLeaderEpochResponse.EpochEndOffset(partition=partition.partition)
        if not self._metadata_cache.contains(partition):
            answer.error_code = Errors.UNKNOWN_TOPIC_OR_PARTITION.code
            return answer
        try:
            found = self._replica_manager.last_offset_for_leader_epoch(
                partition,
                current_leader_epoch=wanted.current_leader_epoch
                if wanted.current_leader_epoch >= 0
                else None,
                leader_epoch=wanted.leader_epoch,
            )
        except ApiError as e:
            answer.error_code = Errors.for_exception(e).code
        else:
            answer.leader_epoch = found.leader_epoch
            answer.end_offset = found.end_offset
        return answer

    def handle_delete_records(self, request: Request) -> None:
        body = request.body_as(DeleteRecordsRequest)
        unknown: dict[TopicPartition, DeleteRecordsPartitionResult] = {}
        offsets: dict[TopicPartition, int] = {}
        for topic in body.topics:
            for wanted in topic.partitions:
                partition = TopicPartition(topic.name, wanted.partition_index)
                if self._metadata_cache.contains(partition):
                    offsets[partition] = wanted.offset
                else:
                    unknown[partition] = DeleteRecordsPartitionResult(
                        Errors.UNKNOWN_TOPIC_OR_PARTITION
                    )

        def respond(deleted: dict[TopicPartition, DeleteRecordsPartitionResult]) -> None:
            topics: dict[str, list[DeleteRecordsResponse.DeleteRecordsPartitionResult]] = {}
            for (topic, index), result in {**unknown, **deleted}.items():
                topics.setdefault(topic, []).append(
                    DeleteRecordsResponse.DeleteRecordsPartitionResult(
                        partition_index=index,
                        low_watermark=result.low_watermark,
                        error_code=result.error.code,
                    )
                )
            self._request_channel.send_response(
                request,
                DeleteRecordsResponse(
                    topics=[
                        DeleteRecordsResponse.DeleteRecordsTopicResult(
                            name=name, partitions=partitions
                        )
                        for name, partitions in topics.items()
                    ]
                ),
            )

        if offsets:
            self._replica_manager.delete_records(body.timeout_ms, offsets, respond)
        else:
            respond({})
