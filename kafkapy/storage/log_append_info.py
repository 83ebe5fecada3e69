"""What an append did."""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from kafkapy.common.compression import CompressionType
from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.storage.log_validator import RecordConversionStats, RecordError

UNKNOWN_OFFSET: Final = -1


class LeaderHwChange(Enum):
    """What an append to the leader did to the high watermark.

    Ports: org.apache.kafka.storage.internals.log.LeaderHwChange
    """

    INCREASED = "increased"
    SAME = "same"
    NONE = "none"


class LogAppendInfo:
    """The offsets and timestamps of appended records; filled in on the way. Not thread-safe.

    Ports: org.apache.kafka.storage.internals.log.LogAppendInfo
    """

    __slots__ = (
        "error_message",
        "first_offset",
        "last_leader_epoch",
        "last_offset",
        "last_offset_of_first_batch",
        "leader_hw_change",
        "log_append_time",
        "log_start_offset",
        "max_timestamp",
        "record_conversion_stats",
        "record_errors",
        "shallow_offset_of_max_timestamp",
        "source_compression",
        "valid_bytes",
    )

    def __init__(
        self,
        *,
        first_offset: int,
        last_offset: int,
        last_offset_of_first_batch: int = -1,
        last_leader_epoch: int | None = None,
        max_timestamp: int = NO_TIMESTAMP,
        shallow_offset_of_max_timestamp: int = -1,
        log_append_time: int = NO_TIMESTAMP,
        log_start_offset: int,
        source_compression: CompressionType = CompressionType.NONE,
        valid_bytes: int = -1,
        record_errors: Sequence[RecordError] = (),
        error_message: str | None = None,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.last_offset_of_first_batch = last_offset_of_first_batch
        self.last_leader_epoch = last_leader_epoch
        self.max_timestamp = max_timestamp
        self.shallow_offset_of_max_timestamp = shallow_offset_of_max_timestamp
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.source_compression = source_compression
        self.valid_bytes = valid_bytes
        self.record_errors = record_errors
        self.error_message = error_message
        self.record_conversion_stats: RecordConversionStats | None = None
        self.leader_hw_change = LeaderHwChange.NONE

    @classmethod
    def unknown(
        cls,
        log_start_offset: int,
        record_errors: Sequence[RecordError] = (),
        error_message: str | None = None,
    ) -> "LogAppendInfo":
        """Of an append that failed."""
        return cls(
            first_offset=UNKNOWN_OFFSET,
            last_offset=-1,
            log_start_offset=log_start_offset,
            record_errors=record_errors,
            error_message=error_message,
        )

    @property
    def first_or_last_offset_of_first_batch(self) -> int:
        """A compressed batch older than v2 tells its first offset only when decompressed."""
        if self.first_offset != UNKNOWN_OFFSET:
            return self.first_offset
        return self.last_offset_of_first_batch

    @property
    def num_messages(self) -> int:
        if self.first_offset >= 0 and self.last_offset >= 0:
            return self.last_offset - self.first_offset + 1
        return 0
