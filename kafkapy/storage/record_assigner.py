"""How a leader turns a producer's records into records of its log."""

from typing import Final

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import RecordTooLargeError
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import TimestampType
from kafkapy.common.types import TopicPartition
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.broker_topic_stats import BrokerTopicStats, ValidatorMetricsRecorder
from kafkapy.storage.log_append_info import LogAppendInfo
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_validator import LogValidator
from kafkapy.utils.time import Time

_AS_PRODUCED: Final = tuple(Compression(codec) for codec in CompressionType)


class RecordAssigner:
    """Runs LogValidator as one topic's config says; made anew when that changes. Immutable.

    Ports: kafka.log.UnifiedLog.append
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        time: Time,
        stats: BrokerTopicStats,
    ) -> None:
        self._topic_partition = topic_partition
        self._time = time
        self._stats = stats
        self._metrics_recorder = ValidatorMetricsRecorder(stats)
        # Worked out once, for every append needs them.
        self._max_message_bytes = config.max_message_bytes
        self._target_compression = config.compression
        self._compacted_topic = config.compact
        self._timestamp_type = (
            TimestampType.LOG_APPEND_TIME
            if config.is_log_append_time
            else TimestampType.CREATE_TIME
        )
        self._timestamp_before_max_ms = config.effective_timestamp_before_max_ms
        self._timestamp_after_max_ms = config.effective_timestamp_after_max_ms

    def assign(
        self,
        records: MemoryRecords,
        info: LogAppendInfo,
        *,
        first_offset: int,
        leader_epoch: int,
        origin: AppendOrigin,
    ) -> MemoryRecords:
        """Valid records with offsets from `first_offset` on; `info` is brought up to date."""
        result = LogValidator(
            records,
            self._topic_partition,
            self._time,
            source_compression=info.source_compression,
            target_compression=self._target_compression or _AS_PRODUCED[info.source_compression],
            compacted_topic=self._compacted_topic,
            timestamp_type=self._timestamp_type,
            timestamp_before_max_ms=self._timestamp_before_max_ms,
            timestamp_after_max_ms=self._timestamp_after_max_ms,
            leader_epoch=leader_epoch,
            origin=origin,
            metrics_recorder=self._metrics_recorder,
        ).validate_messages_and_assign_offsets(first_offset)
        info.first_offset = first_offset
        info.last_offset = result.next_offset - 1
        info.max_timestamp = result.max_timestamp_ms
        info.shallow_offset_of_max_timestamp = result.shallow_offset_of_max_timestamp
        info.record_conversion_stats = result.record_conversion_stats
        if self._timestamp_type is TimestampType.LOG_APPEND_TIME:
            info.log_append_time = result.log_append_time_ms
        if result.message_size_maybe_changed:
            for batch in result.validated_records.batches():
                if batch.size_in_bytes > self._max_message_bytes:
                    self._refuse(batch.size_in_bytes, records.size_in_bytes)
        return result.validated_records

    def _refuse(self, batch_bytes: int, rejected_bytes: int) -> None:
        self._stats.mark_bytes_rejected(self._topic_partition.topic, rejected_bytes)
        raise RecordTooLargeError(
            f"A batch for {self._topic_partition} has {batch_bytes} bytes after conversion, more "
            f"than max.message.bytes ({self._max_message_bytes})"
        )
