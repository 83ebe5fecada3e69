"""What can be said about records before the log's lock is taken."""

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import CorruptRecordError, InvalidRecordError, RecordTooLargeError
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.common.record.record_batch import MAGIC_VALUE_V2, NO_PARTITION_LEADER_EPOCH
from kafkapy.common.types import TopicPartition
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.log_append_info import UNKNOWN_OFFSET, LogAppendInfo
from kafkapy.storage.storage_errors import OffsetsOutOfOrderError


def analyze_and_validate_records(
    records: MemoryRecords,
    topic_partition: TopicPartition,
    *,
    origin: AppendOrigin,
    max_message_bytes: int | None,
    require_offsets_monotonic: bool,
    log_start_offset: int,
    stats: BrokerTopicStats,
) -> LogAppendInfo:
    """Checks every batch's size and checksum and sums them up.

    `max_message_bytes` None lets any size pass, as for records that the leader has accepted.
    Raises RecordTooLargeError, CorruptRecordError, InvalidRecordError or OffsetsOutOfOrderError.

    Ports: kafka.log.UnifiedLog.analyzeAndValidateRecords
    """
    valid_bytes = 0
    first_offset = UNKNOWN_OFFSET
    last_offset_of_first_batch = last_offset = -1
    last_leader_epoch = NO_PARTITION_LEADER_EPOCH
    source_compression = CompressionType.NONE
    max_timestamp = NO_TIMESTAMP
    shallow_offset_of_max_timestamp = -1
    is_first = True
    monotonic = True
    for batch in records.batches():
        if (
            origin is AppendOrigin.CLIENT
            and batch.magic >= MAGIC_VALUE_V2
            and batch.base_offset != 0
        ):
            raise InvalidRecordError(
                f"The base offset of a batch for {topic_partition} must be 0, but it is "
                f"{batch.base_offset}"
            )
        if is_first:
            # The first offset of an older batch is known only when it is decompressed.
            if batch.magic >= MAGIC_VALUE_V2:
                first_offset = batch.base_offset
            last_offset_of_first_batch = batch.last_offset
            is_first = False
        if last_offset >= batch.last_offset:
            monotonic = False
        last_offset = batch.last_offset
        last_leader_epoch = batch.leader_epoch
        size = batch.size_in_bytes
        if max_message_bytes is not None and size > max_message_bytes:
            stats.mark_bytes_rejected(topic_partition.topic, records.size_in_bytes)
            raise RecordTooLargeError(
                f"A batch for {topic_partition} has {size} bytes, more than max.message.bytes "
                f"({max_message_bytes})"
            )
        if not batch.is_valid:
            stats.invalid_message_crc_records.mark()
            raise CorruptRecordError(
                f"The checksum of a batch for {topic_partition} does not match its content"
            )
        if batch.max_timestamp > max_timestamp:
            max_timestamp = batch.max_timestamp
            shallow_offset_of_max_timestamp = last_offset
        valid_bytes += size
        if batch.is_compressed:
            source_compression = batch.compression_type
    if require_offsets_monotonic and not monotonic:
        raise OffsetsOutOfOrderError(
            f"The offsets of records for {topic_partition} do not increase: "
            f"{[batch.last_offset for batch in records.batches()]}"
        )
    return LogAppendInfo(
        first_offset=first_offset,
        last_offset=last_offset,
        last_offset_of_first_batch=last_offset_of_first_batch,
        last_leader_epoch=None
        if last_leader_epoch == NO_PARTITION_LEADER_EPOCH
        else last_leader_epoch,
        max_timestamp=max_timestamp,
        shallow_offset_of_max_timestamp=shallow_offset_of_max_timestamp,
        log_start_offset=log_start_offset,
        source_compression=source_compression,
        valid_bytes=valid_bytes,
    )
