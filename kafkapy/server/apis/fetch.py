"""The Fetch API, for consumers and followers."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from uuid import UUID

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import (
    Errors,
    KafkaError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
)
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.record.down_conversion import down_convert
from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record_batch import MAGIC_VALUE_V0, MAGIC_VALUE_V1
from kafkapy.common.types import ZERO_UUID, TopicIdPartition, TopicPartition
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.replication.fetch_partition_result import FetchPartitionResult
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.server.apis.leader_hints import LeaderHints
from kafkapy.server.fetch_session import (
    FetchContext,
    FetchManager,
    FetchMetadata,
    PartitionResult,
    records_size,
)
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.fetch_params import ClientMetadata, FetchParams, FetchPartitionData

log = logging.getLogger(__name__)

FIRST_VERSION_WITH_TOPIC_IDS = 13
# Older clients cannot read zstd, and below these versions not record batches v2 or v1 either.
_FIRST_VERSION_WITH_ZSTD = 10
_LAST_VERSION_WITH_MAGIC_V0 = 1
_LAST_VERSION_WITH_MAGIC_V1 = 3
# Only from here on may a consumer be sent to, or served by, a follower.
_FIRST_VERSION_WITH_RACKS = 11
_FIRST_VERSION_WITH_LEADERS = 16
# Older clients would give up at KAFKA_STORAGE_ERROR, which they do not know.
_FIRST_VERSION_WITH_STORAGE_ERROR = 6
_WRONG_LEADER = (Errors.NOT_LEADER_OR_FOLLOWER.code, Errors.FENCED_LEADER_EPOCH.code)
_READ_COMMITTED = 1
_CONSUMER_REPLICA_ID = -1

FetchData = dict[TopicIdPartition, FetchPartitionData]


class FetchHandler:
    """Resolves the session, reads through ReplicaManager, converts for old clients, answers.

    Ports: kafka.server.KafkaApis.handleFetchRequest
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        fetch_manager: FetchManager,
        broker_topic_stats: BrokerTopicStats,
        *,
        fetch_max_bytes: int,
    ) -> None:
        self._request_channel = request_channel
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache
        self._fetch_manager = fetch_manager
        self._broker_topic_stats = broker_topic_stats
        self._fetch_max_bytes = fetch_max_bytes

    def handle(self, request: Request) -> None:
        fetch = request.body_as(FetchRequest)
        version = request.header.api_version
        replica_id = fetch.replica_id if version < 15 else fetch.replica_state.replica_id
        is_follower = replica_id >= 0
        uses_topic_ids = version >= FIRST_VERSION_WITH_TOPIC_IDS
        topic_names = self._metadata_cache.topic_ids_to_names() if uses_topic_ids else {}
        context = self._fetch_manager.new_context(
            FetchMetadata(fetch.session_id, fetch.session_epoch),
            _fetch_data(fetch, topic_names),
            to_forget=_forgotten(fetch, topic_names),
            is_follower=is_follower,
            uses_topic_ids=uses_topic_ids,
            topic_names=topic_names,
        )
        erroneous: list[PartitionResult] = []
        interesting: list[tuple[TopicIdPartition, FetchPartitionData]] = []
        for topic_id_partition, data in context.partitions():
            if not topic_id_partition.topic_partition.topic:
                erroneous.append(
                    (topic_id_partition, _error(topic_id_partition, Errors.UNKNOWN_TOPIC_ID))
                )
            elif not self._metadata_cache.contains(topic_id_partition.topic_partition):
                erroneous.append(
                    (
                        topic_id_partition,
                        _error(topic_id_partition, Errors.UNKNOWN_TOPIC_OR_PARTITION),
                    )
                )
            else:
                interesting.append((topic_id_partition, data))

        offsets = (
            {key: data.fetch_offset for key, data in interesting}
            if version <= _LAST_VERSION_WITH_MAGIC_V1
            else {}
        )

        def respond(results: list[tuple[TopicIdPartition, FetchPartitionResult]]) -> None:
            self._respond(request, context, results, erroneous, offsets)

        if not interesting:
            respond([])
            return
        max_bytes = fetch.max_bytes if is_follower else min(fetch.max_bytes, self._fetch_max_bytes)
        self._replica_manager.fetch_messages(
            FetchParams(
                request_version=version,
                replica_id=replica_id,
                replica_epoch=fetch.replica_state.replica_epoch,
                max_wait_ms=fetch.max_wait_ms,
                min_bytes=min(fetch.min_bytes, max_bytes),
                max_bytes=max_bytes,
                isolation=_isolation(replica_id, fetch.isolation_level),
                client_metadata=ClientMetadata(
                    rack_id=fetch.rack_id,
                    client_id=request.header.client_id or "",
                    client_address=request.context.client_address,
                    listener_name=request.context.listener_name,
                )
                if version >= _FIRST_VERSION_WITH_RACKS and not is_follower
                else None,
            ),
            interesting,
            respond,
        )

    def _respond(
        self,
        request: Request,
        context: FetchContext,
        results: list[tuple[TopicIdPartition, FetchPartitionResult]],
        erroneous: list[PartitionResult],
        offsets: dict[TopicIdPartition, int],
    ) -> None:
        version = request.header.api_version
        answers = [
            (key, self._partition_data(key, result, version, offsets.get(key, 0)))
            for key, result in results
        ]
        response = context.response(answers + erroneous)
        if version >= _FIRST_VERSION_WITH_LEADERS:
            self._add_leaders(request, response)
        for topic in response.responses:
            for data in topic.partitions:
                if size := records_size(data):
                    self._broker_topic_stats.update_bytes_out(topic.topic, size)
        self._request_channel.send_response(request, response)

    def _partition_data(
        self,
        topic_id_partition: TopicIdPartition,
        result: FetchPartitionResult,
        version: int,
        fetch_offset: int,
    ) -> FetchResponse.PartitionData:
        if result.error is not Errors.NONE:
            failed = _error(topic_id_partition, _known_error(result.error, version))
            # Nothing was read; where nothing could be asked for, Kafka answers an empty list.
            failed.aborted_transactions = None
            return failed
        records: FileRecords | MemoryRecords = result.records
        if version < _FIRST_VERSION_WITH_ZSTD:
            try:
                records = self._for_old_client(
                    topic_id_partition.topic_partition,
                    records,
                    version=version,
                    fetch_offset=fetch_offset,
                )
            except KafkaError as e:
                log.debug("Fetch of %s cannot be converted: %s", topic_id_partition, e)
                return _error(topic_id_partition, Errors.for_exception(e))
            except OSError as e:
                log.warning("Fetch of %s cannot be converted: %s", topic_id_partition, e)
                return _error(topic_id_partition, _known_error(Errors.KAFKA_STORAGE_ERROR, version))
        data = FetchResponse.PartitionData(
            partition_index=topic_id_partition.topic_partition.partition,
            high_watermark=result.high_watermark,
            last_stable_offset=result.last_stable_offset,
            log_start_offset=result.log_start_offset,
            aborted_transactions=None
            if result.aborted_transactions is None
            else [
                FetchResponse.AbortedTransaction(
                    producer_id=aborted.producer_id, first_offset=aborted.first_offset
                )
                for aborted in result.aborted_transactions
            ],
            preferred_read_replica=result.preferred_read_replica
            if result.preferred_read_replica is not None
            else -1,
            records=records,
        )
        if result.diverging_epoch is not None:
            data.diverging_epoch = FetchResponse.EpochEndOffset(
                epoch=result.diverging_epoch.epoch, end_offset=result.diverging_epoch.end_offset
            )
        return data

    def _for_old_client(
        self,
        partition: TopicPartition,
        records: FileRecords | MemoryRecords,
        *,
        version: int,
        fetch_offset: int,
    ) -> FileRecords | MemoryRecords:
        """The same records in a form that this Fetch version can carry."""
        config = self._replica_manager.get_log_config(partition)
        if config is not None and config.compression_type == CompressionType.ZSTD.name.lower():
            raise UnsupportedCompressionTypeError(f"{partition} is zstd; Fetch v10 can carry it")
        if version > _LAST_VERSION_WITH_MAGIC_V1 or not records.size_in_bytes:
            return records
        if config is not None and not config.message_downconversion_enable:
            raise UnsupportedVersionError(f"Records of {partition} are not converted down")
        magic = MAGIC_VALUE_V0 if version <= _LAST_VERSION_WITH_MAGIC_V0 else MAGIC_VALUE_V1
        converted = down_convert(records, magic, fetch_offset)
        self._broker_topic_stats.mark_fetch_conversion(partition.topic)
        return converted

    def _add_leaders(self, request: Request, response: FetchResponse) -> None:
        hints = LeaderHints(self._metadata_cache, request.context.listener_name)
        for topic in response.responses:
            for data in topic.partitions:
                if data.error_code not in _WRONG_LEADER:
                    continue
                leader = hints.leader_of(TopicPartition(topic.topic, data.partition_index))
                if leader is not None:
                    data.current_leader = FetchResponse.LeaderIdAndEpoch(
                        leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
                    )
        hints.add_nodes_to(response)


def _fetch_data(fetch: FetchRequest, topic_names: Mapping[UUID, str]) -> FetchData:
    fetch_data: FetchData = {}
    for topic in fetch.topics:
        name = topic.topic if topic.topic_id == ZERO_UUID else topic_names.get(topic.topic_id, "")
        for partition in topic.partitions:
            key = TopicIdPartition(topic.topic_id, TopicPartition(name, partition.partition))
            fetch_data[key] = FetchPartitionData(
                topic_id=topic.topic_id,
                fetch_offset=partition.fetch_offset,
                log_start_offset=partition.log_start_offset,
                max_bytes=partition.partition_max_bytes,
                current_leader_epoch=_optional_epoch(partition.current_leader_epoch),
                last_fetched_epoch=_optional_epoch(partition.last_fetched_epoch),
            )
    return fetch_data


def _forgotten(fetch: FetchRequest, topic_names: Mapping[UUID, str]) -> list[TopicIdPartition]:
    return [
        TopicIdPartition(
            topic.topic_id,
            TopicPartition(topic.topic or topic_names.get(topic.topic_id, ""), partition),
        )
        for topic in fetch.forgotten_topics_data
        for partition in topic.partitions
    ]


def _optional_epoch(epoch: int) -> int | None:
    return epoch if epoch >= 0 else None


def _isolation(replica_id: int, isolation_level: int) -> FetchIsolation:
    if replica_id != _CONSUMER_REPLICA_ID:
        return FetchIsolation.LOG_END
    if isolation_level == _READ_COMMITTED:
        return FetchIsolation.TXN_COMMITTED
    return FetchIsolation.HIGH_WATERMARK


def _known_error(error: Errors, version: int) -> Errors:
    """The error, or what makes clients of this version look for the leader and try again."""
    if error is Errors.KAFKA_STORAGE_ERROR and version < _FIRST_VERSION_WITH_STORAGE_ERROR:
        return Errors.NOT_LEADER_OR_FOLLOWER
    return error


def _error(topic_id_partition: TopicIdPartition, error: Errors) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(
        partition_index=topic_id_partition.topic_partition.partition,
        error_code=error.code,
        high_watermark=-1,
        records=MemoryRecords.EMPTY,
    )
