"""What a leader checks and assigns before records enter its log.

A v2 batch whose codec stays the same is validated by walking its records and changed in place;
anything else (v0/v1 message sets, another codec) is rebuilt as one v2 batch, record by record, so
that memory stays at the size of the result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import (
    ApiError,
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    UnsupportedCompressionTypeError,
)
from kafkapy.common.record.default_record import walk_records
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.legacy_record_batch import LegacyRecordBatch
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.memory_records_builder import MemoryRecordsBuilder
from kafkapy.common.record.record import NO_TIMESTAMP, Record, TimestampType
from kafkapy.common.record.record_batch import (
    MAGIC_VALUE_V2,
    RECORD_BATCH_OVERHEAD,
    MutableRecordBatch,
    RecordBatch,
)
from kafkapy.common.types import TopicPartition
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.utils.time import Time

# A batch may hold millions of records: the report of what is wrong with them must stay small.
MAX_RECORD_ERRORS: Final = 10_000

_MIN_INT64: Final = -(2**63)
_MAX_INT64: Final = 2**63 - 1

_FIRST_PRODUCE_VERSION_WITH_V2: Final = 3
_FIRST_PRODUCE_VERSION_WITH_ZSTD: Final = 7


@dataclass(frozen=True, slots=True)
class RecordError:
    """Why one record of a batch was refused."""

    batch_index: int
    message: str


class RecordValidationError(ApiError):
    """Records were refused one by one; raised as one of the subclasses, which give the code.

    Ports: org.apache.kafka.storage.internals.log.RecordValidationException
    """

    def __init__(self, message: str, record_errors: list[RecordError]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class InvalidRecordsError(RecordValidationError, InvalidRecordError):
    """At least one record is invalid, none for its timestamp."""


class InvalidTimestampsError(RecordValidationError, InvalidTimestampError):
    """At least one record has a timestamp out of bounds."""


class MetricsRecorder(Protocol):
    """Counts what validation refuses."""

    def record_invalid_magic(self) -> None: ...

    def record_invalid_offset(self) -> None: ...

    def record_invalid_sequence(self) -> None: ...

    def record_invalid_checksums(self) -> None: ...

    def record_no_key_compacted_topic(self) -> None: ...


class RecordConversionStats(NamedTuple):
    """What rebuilding records cost.

    Ports: org.apache.kafka.common.record.RecordValidationStats
    """

    temporary_memory_bytes: int = 0
    num_records_converted: int = 0
    conversion_time_nanos: int = 0


class ValidationResult:
    """Records ready to append.

    `next_offset` is the offset after the last record; `message_size_maybe_changed` says that size
    limits have to be checked again.
    """

    __slots__ = (
        "log_append_time_ms",
        "max_timestamp_ms",
        "message_size_maybe_changed",
        "next_offset",
        "record_conversion_stats",
        "shallow_offset_of_max_timestamp",
        "validated_records",
    )

    def __init__(
        self,
        log_append_time_ms: int,
        validated_records: MemoryRecords,
        max_timestamp_ms: int,
        shallow_offset_of_max_timestamp: int,
        message_size_maybe_changed: bool,
        record_conversion_stats: RecordConversionStats,
        next_offset: int,
    ) -> None:
        self.log_append_time_ms = log_append_time_ms
        self.validated_records = validated_records
        self.max_timestamp_ms = max_timestamp_ms
        self.shallow_offset_of_max_timestamp = shallow_offset_of_max_timestamp
        self.message_size_maybe_changed = message_size_maybe_changed
        self.record_conversion_stats = record_conversion_stats
        self.next_offset = next_offset


_NO_CONVERSION: Final = RecordConversionStats()


class LogValidator:
    """Validates the records of one append and gives them offsets. Used by one thread, once.

    Ports: org.apache.kafka.storage.internals.log.LogValidator
    """

    __slots__ = (
        "_compacted_topic",
        "_leader_epoch",
        "_metrics",
        "_now_ms",
        "_origin",
        "_records",
        "_source_compression",
        "_target_compression",
        "_time",
        "_timestamp_after_max_ms",
        "_timestamp_before_max_ms",
        "_timestamp_type",
        "_topic_partition",
    )

    def __init__(
        self,
        records: MemoryRecords,
        topic_partition: TopicPartition,
        time: Time,
        *,
        source_compression: CompressionType,
        target_compression: Compression,
        compacted_topic: bool,
        timestamp_type: TimestampType,
        timestamp_before_max_ms: int,
        timestamp_after_max_ms: int,
        leader_epoch: int,
        origin: AppendOrigin,
        metrics_recorder: MetricsRecorder,
    ) -> None:
        self._records = records
        self._topic_partition = topic_partition
        self._time = time
        self._source_compression = source_compression
        self._target_compression = target_compression
        self._compacted_topic = compacted_topic
        self._timestamp_type = timestamp_type
        self._timestamp_before_max_ms = timestamp_before_max_ms
        self._timestamp_after_max_ms = timestamp_after_max_ms
        self._leader_epoch = leader_epoch
        self._origin = origin
        self._metrics = metrics_recorder
        self._now_ms = time.milliseconds()

    def validate_messages_and_assign_offsets(self, first_offset: int) -> ValidationResult:
        """Assigns offsets from first_offset on; in place where nothing else has to change.

        The checksums of batches are taken as verified. A read-only buffer is copied before it is
        changed in place. Raises InvalidRecordError, InvalidTimestampError (both also as
        RecordValidationError), CorruptRecordError, RecordTooLargeError or
        UnsupportedCompressionTypeError; nothing has been changed then.
        """
        batches = self._records.batches()
        if not batches:
            raise InvalidRecordError("records have no batch at all")
        first = batches[0]
        one_only = first.magic >= MAGIC_VALUE_V2 or (
            self._source_compression is not CompressionType.NONE
        )
        if one_only and len(batches) > 1:
            raise InvalidRecordError("only one batch is allowed, but there are more")
        if isinstance(first, DefaultRecordBatch) and (
            self._source_compression is self._target_compression.type or first.is_control_batch
        ):
            return self._assign_in_place(first, first_offset)
        return self._rebuild(batches, first_offset)

    def _assign_in_place(self, batch: DefaultRecordBatch, first_offset: int) -> ValidationResult:
        self._validate_batch(batch, batch)
        count = batch.count
        if count is None or count <= 0:
            raise InvalidRecordError(f"batch declares {count} records")
        source = batch.record_input()
        min_delta, max_delta, all_have_keys, offsets_are_contiguous = walk_records(source, count)
        claims_log_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
        max_timestamp = batch.base_timestamp + max_delta
        if claims_log_append_time:
            max_timestamp = batch.max_timestamp
        if (
            claims_log_append_time
            or not offsets_are_contiguous
            or (self._compacted_topic and not all_have_keys)
            or self._is_out_of_bounds(max_timestamp)
            or (min_delta != max_delta and self._is_out_of_bounds(batch.base_timestamp + min_delta))
        ):
            self._validate_each_record(batch)

        # Nothing below can fail: a refused batch is left as it came.
        records = self._records
        if records.buffer.readonly:
            records = MemoryRecords(bytearray(records.buffer))
            (copied,) = records.batches()
        else:
            copied = batch
        next_offset = first_offset + count
        if self._timestamp_type is TimestampType.LOG_APPEND_TIME:
            max_timestamp = self._now_ms
        max_timestamp = max(max_timestamp, NO_TIMESTAMP)
        copied.set_last_offset(next_offset - 1)
        copied.set_leader_epoch(self._leader_epoch)
        copied.set_max_timestamp(self._timestamp_type, max_timestamp)
        stats = _NO_CONVERSION
        if batch.is_compressed:
            stats = RecordConversionStats(RECORD_BATCH_OVERHEAD + source.bytes_read)
        return ValidationResult(
            self._now_ms,
            records,
            max_timestamp,
            -1 if max_timestamp == NO_TIMESTAMP else next_offset - 1,
            False,
            stats,
            next_offset,
        )

    def _rebuild(
        self, batches: Sequence[MutableRecordBatch], first_offset: int
    ) -> ValidationResult:
        start_ns = self._time.nanoseconds()
        first = batches[0]
        builder = MemoryRecordsBuilder(
            compression=self._target_compression,
            timestamp_type=self._timestamp_type,
            base_offset=first_offset,
            log_append_time=self._now_ms,
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            base_sequence=first.base_sequence,
            leader_epoch=self._leader_epoch,
            is_transactional=first.is_transactional,
        )
        offset = first_offset
        source_bytes = 0
        for batch in batches:
            self._validate_batch(first, batch)
            if isinstance(batch, LegacyRecordBatch):
                records = self._checked_records(batch)
            else:
                records = batch.records()
            errors = _RecordErrors()
            for index, record in enumerate(records):
                source_bytes += record.size_in_bytes
                error = self._validate_record(batch, record, index)
                if error is not None:
                    errors.add(index, error)
                elif not errors.found:
                    builder.append_with_offset(offset, record)
                    offset += 1
            errors.raise_if_any()
        rebuilt = MemoryRecords(builder.build())
        info = builder.info()
        stats = RecordConversionStats(
            source_bytes + builder.uncompressed_bytes_written,
            builder.num_records,
            self._time.nanoseconds() - start_ns,
        )
        return ValidationResult(
            self._now_ms,
            rebuilt,
            info.max_timestamp,
            info.shallow_offset_of_max_timestamp,
            True,
            stats,
            offset,
        )

    def _validate_batch(self, first: RecordBatch, batch: RecordBatch) -> None:
        if batch.magic != first.magic:
            self._metrics.record_invalid_magic()
            raise InvalidRecordError(
                f"batch of magic {batch.magic} follows one of magic {first.magic} "
                f"in {self._topic_partition}"
            )
        if self._origin is not AppendOrigin.CLIENT:
            return
        if batch.magic >= MAGIC_VALUE_V2:
            count_from_offsets = batch.last_offset - batch.base_offset + 1
            if batch.count is None or batch.count <= 0 or count_from_offsets != batch.count:
                self._metrics.record_invalid_offset()
                raise InvalidRecordError(
                    f"offsets {batch.base_offset} to {batch.last_offset} do not fit a count of "
                    f"{batch.count} records in {self._topic_partition}"
                )
        if batch.is_control_batch:
            self._metrics.record_invalid_offset()
            raise InvalidRecordError(
                f"clients are not allowed to write control records to {self._topic_partition}"
            )
        if batch.has_producer_id and batch.base_sequence < 0:
            self._metrics.record_invalid_sequence()
            raise InvalidRecordError(
                f"producer {batch.producer_id} sent the invalid sequence {batch.base_sequence} "
                f"to {self._topic_partition}"
            )

    def _checked_records(self, batch: LegacyRecordBatch) -> Iterator[Record]:
        try:
            yield from batch.checked_records()
        except CorruptRecordError:
            self._metrics.record_invalid_checksums()
            raise

    def _validate_each_record(self, batch: DefaultRecordBatch) -> None:
        """Says which records are wrong, if any is: the walk only knows that one may be."""
        errors = _RecordErrors()
        for index, record in enumerate(batch.records()):
            error = self._validate_record(batch, record, index)
            if error is not None:
                errors.add(index, error)
        errors.raise_if_any()

    def _validate_record(
        self, batch: RecordBatch, record: Record, index: int
    ) -> InvalidRecordError | InvalidTimestampError | None:
        if record.magic != batch.magic:
            self._metrics.record_invalid_magic()
            return InvalidRecordError(
                f"record of magic {record.magic} is inside a set of magic {batch.magic}"
            )
        if batch.magic >= MAGIC_VALUE_V2 and record.offset - batch.base_offset != index:
            self._metrics.record_invalid_offset()
            return InvalidRecordError(
                f"record has offset delta {record.offset - batch.base_offset}, not {index}"
            )
        if self._compacted_topic and record.key is None:
            self._metrics.record_no_key_compacted_topic()
            return InvalidRecordError(
                f"compacted topic does not accept a record without key in {self._topic_partition}"
            )
        if not _MIN_INT64 <= record.timestamp <= _MAX_INT64:
            return InvalidTimestampError("timestamp does not fit 64 bits")
        if self._timestamp_type is TimestampType.CREATE_TIME and record.timestamp != NO_TIMESTAMP:
            if self._is_out_of_bounds(record.timestamp):
                return InvalidTimestampError(
                    f"timestamp {record.timestamp} is out of range "
                    f"[{self._now_ms - self._timestamp_before_max_ms}, "
                    f"{self._now_ms + self._timestamp_after_max_ms}]"
                )
        elif batch.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return InvalidTimestampError("a producer must not set the type LogAppendTime")
        return None

    def _is_out_of_bounds(self, timestamp: int) -> bool:
        if self._timestamp_type is not TimestampType.CREATE_TIME:
            return not _MIN_INT64 <= timestamp <= _MAX_INT64
        age_ms = self._now_ms - timestamp
        return (
            age_ms > self._timestamp_before_max_ms
            or -age_ms > self._timestamp_after_max_ms
            or not _MIN_INT64 <= timestamp <= _MAX_INT64
        )


class _RecordErrors:
    """Collects the errors of one batch's records."""

    __slots__ = ("_any_timestamp", "_errors", "found")

    def __init__(self) -> None:
        self.found = 0
        self._any_timestamp = False
        self._errors: list[RecordError] = []

    def add(self, index: int, error: InvalidRecordError | InvalidTimestampError) -> None:
        self.found += 1
        self._any_timestamp = self._any_timestamp or isinstance(error, InvalidTimestampError)
        if self.found <= MAX_RECORD_ERRORS:
            self._errors.append(RecordError(index, str(error)))

    def raise_if_any(self) -> None:
        if not self.found:
            return
        if self._any_timestamp:
            raise InvalidTimestampsError(
                "records have been refused for their timestamps", self._errors
            )
        shown = "; ".join(f"{error.batch_index}: {error.message}" for error in self._errors[:3])
        raise InvalidRecordsError(
            f"{self.found} records have been refused, the first of them: {shown}", self._errors
        )


def validate_produce_records(version: int, records: MemoryRecords) -> None:
    """What a Produce request of this version may carry for a partition; raises if it does not.

    Older versions are left to LogValidator: their clients are known to send any format.
    """
    if version < _FIRST_PRODUCE_VERSION_WITH_V2:
        return
    batches = records.batches()
    if not batches:
        raise InvalidRecordError(f"Produce v{version} needs a record batch for each partition")
    if batches[0].magic != MAGIC_VALUE_V2:
        raise InvalidRecordError(f"Produce v{version} carries only batches of magic 2")
    if (
        version < _FIRST_PRODUCE_VERSION_WITH_ZSTD
        and batches[0].compression_type is CompressionType.ZSTD
    ):
        raise UnsupportedCompressionTypeError(f"Produce v{version} must not carry zstd")
    if len(batches) > 1:
        raise InvalidRecordError(f"Produce v{version} carries one batch for each partition")
