"""A LogValidator with defaults, for its tests."""

from dataclasses import dataclass, field

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import UnsupportedCompressionTypeError
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import TimestampType
from kafkapy.common.types import TopicPartition
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.log_validator import LogValidator, ValidationResult
from tests.helpers.mock_time import MockTime
from tests.helpers.records import TIMESTAMP

LONG_MAX = 2**63 - 1
NOW = TIMESTAMP + 1000


@dataclass
class CountingRecorder:
    """Remembers what was counted."""

    seen: list[str] = field(default_factory=list)

    def record_invalid_magic(self) -> None:
        self.seen.append("magic")

    def record_invalid_offset(self) -> None:
        self.seen.append("offset")

    def record_invalid_sequence(self) -> None:
        self.seen.append("sequence")

    def record_invalid_checksums(self) -> None:
        self.seen.append("checksum")

    def record_no_key_compacted_topic(self) -> None:
        self.seen.append("no key")


def source_codec(records: MemoryRecords) -> CompressionType:
    """The codec as UnifiedLog determines it: that of the last compressed batch."""
    codec = CompressionType.NONE
    for batch in records.batches():
        try:
            if batch.is_compressed:
                codec = batch.compression_type
        except UnsupportedCompressionTypeError:
            return CompressionType.NONE
    return codec


def validate(
    records: MemoryRecords,
    *,
    offset: int = 1000,
    target: Compression | None = None,
    compacted: bool = False,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    before_max_ms: int = LONG_MAX,
    after_max_ms: int = LONG_MAX,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    recorder: CountingRecorder | None = None,
) -> ValidationResult:
    source = source_codec(records)
    return LogValidator(
        records,
        TopicPartition("topic", 0),
        MockTime(NOW),
        source_compression=source,
        target_compression=target or Compression(source),
        compacted_topic=compacted,
        timestamp_type=timestamp_type,
        timestamp_before_max_ms=before_max_ms,
        timestamp_after_max_ms=after_max_ms,
        leader_epoch=5,
        origin=origin,
        metrics_recorder=recorder or CountingRecorder(),
    ).validate_messages_and_assign_offsets(offset)
