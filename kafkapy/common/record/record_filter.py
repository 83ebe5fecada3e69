"""Taking records out of stored batches.

What is kept of a batch keeps its offsets: base and last offset of a v2 batch stay even if their
records go, and with them the last sequence number of its producer. A batch that is kept as a whole
is not encoded again, and of one that is not the kept records are copied as they are stored.
"""

from abc import ABC, abstractmethod
from enum import Enum
from typing import NamedTuple

from kafkapy.common.compression import Compression
from kafkapy.common.errors import InvalidRecordError
from kafkapy.common.record.default_record import (
    RecordSlice,
    slice_records,
    write_with_timestamp,
)
from kafkapy.common.record.default_record_batch import DefaultRecordBatch, encode_batch
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.memory_records_builder import MemoryRecordsBuilder
from kafkapy.common.record.record import NO_TIMESTAMP, Record, TimestampType
from kafkapy.common.record.record_batch import (
    COMPRESSION_CODEC_MASK,
    DELETE_HORIZON_FLAG_MASK,
    MutableRecordBatch,
)

_MAX_TIMESTAMP = (1 << 63) - 1


class BatchRetention(Enum):
    """What happens to a batch.

    Ports: org.apache.kafka.common.record.MemoryRecords.RecordFilter.BatchRetention
    """

    DELETE = "delete"
    RETAIN_EMPTY = "retain, even without records"
    DELETE_EMPTY = "retain if it has records left"


class BatchRetentionResult(NamedTuple):
    """Ports: org.apache.kafka.common.record.MemoryRecords.RecordFilter.BatchRetentionResult"""

    retention: BatchRetention
    contains_marker_for_empty_txn: bool = False


class FilteredBatch(NamedTuple):
    """What is left of a batch: nothing, the same bytes, or a smaller batch."""

    records: MemoryRecords | None
    messages_read: int
    messages_retained: int = 0
    max_timestamp: int = NO_TIMESTAMP
    last_offset: int = -1


class RecordFilter(ABC):
    """Says which batches and records stay. Used by one thread.

    A tombstone, or the marker of a transaction without records, gets a delete horizon when a filter
    first lets it pass: `delete_retention_ms` after `current_time_ms`.

    Ports: org.apache.kafka.common.record.MemoryRecords.RecordFilter
    """

    def __init__(self, current_time_ms: int, delete_retention_ms: int) -> None:
        self.current_time_ms = current_time_ms
        self.delete_retention_ms = delete_retention_ms

    @abstractmethod
    def check_batch_retention(self, batch: MutableRecordBatch) -> BatchRetentionResult:
        """Asked once for each batch, before its records."""

    @abstractmethod
    def should_retain_record(
        self, batch: MutableRecordBatch, offset: int, key: bytes | None, *, has_value: bool
    ) -> bool: ...

    def filter_batch(self, batch: MutableRecordBatch) -> FilteredBatch:
        """Raises InvalidRecordError or CorruptRecordError for a batch that cannot be read.

        Ports: org.apache.kafka.common.record.MemoryRecords.filterTo
        """
        result = self.check_batch_retention(batch)
        if result.retention is BatchRetention.DELETE:
            return FilteredBatch(None, 0)
        if isinstance(batch, DefaultRecordBatch):
            return self._filter_default(batch, result)
        return self._filter_legacy(batch)

    def _filter_default(
        self, batch: DefaultRecordBatch, result: BatchRetentionResult
    ) -> FilteredBatch:
        count = batch.count
        if count is None or count < 0:
            raise InvalidRecordError(f"batch declares {count} records")
        base_offset = batch.base_offset
        retained: list[RecordSlice] = []
        has_tombstones = False
        for record in slice_records(batch.record_input(), count):
            if self.should_retain_record(
                batch, base_offset + record.offset_delta, record.key, has_value=record.has_value
            ):
                retained.append(record)
                has_tombstones = has_tombstones or not record.has_value
        if retained:
            horizon_ms = None
            if batch.delete_horizon_ms is None and (
                has_tombstones or result.contains_marker_for_empty_txn
            ):
                # A retention without end does not fit into a timestamp.
                horizon_ms = min(self.current_time_ms + self.delete_retention_ms, _MAX_TIMESTAMP)
            if len(retained) == count and horizon_ms is None:
                return _unchanged(batch, count)
            return _rebuilt(batch, retained, horizon_ms)
        if result.retention is BatchRetention.RETAIN_EMPTY:
            return FilteredBatch(_emptied(batch), count, 0, batch.max_timestamp, batch.last_offset)
        return FilteredBatch(None, count)

    def _filter_legacy(self, batch: MutableRecordBatch) -> FilteredBatch:
        messages_read = 0
        is_unchanged = True
        retained: list[Record] = []
        for record in batch.records():
            messages_read += 1
            if self.should_retain_record(
                batch, record.offset, record.key, has_value=record.value is not None
            ):
                retained.append(record)
                # Old brokers have wrapped records of one magic into batches of the other.
                is_unchanged = is_unchanged and record.magic == batch.magic
            else:
                is_unchanged = False
        if not retained:
            return FilteredBatch(None, messages_read)
        if is_unchanged:
            return _unchanged(batch, messages_read)
        is_append_time = batch.timestamp_type is TimestampType.LOG_APPEND_TIME
        builder = MemoryRecordsBuilder(
            magic=batch.magic,
            compression=Compression(batch.compression_type),
            timestamp_type=batch.timestamp_type,
            base_offset=retained[0].offset,
            log_append_time=batch.max_timestamp if is_append_time else NO_TIMESTAMP,
        )
        for record in retained:
            builder.append_with_offset(record.offset, record)
        return FilteredBatch(
            MemoryRecords(builder.build()),
            messages_read,
            len(retained),
            builder.info().max_timestamp,
            retained[-1].offset,
        )


def _unchanged(batch: MutableRecordBatch, count: int) -> FilteredBatch:
    return FilteredBatch(
        MemoryRecords(batch.buffer), count, count, batch.max_timestamp, batch.last_offset
    )


def _rebuilt(
    batch: DefaultRecordBatch, retained: list[RecordSlice], new_delete_horizon_ms: int | None
) -> FilteredBatch:
    """A new delete horizon takes the base timestamp's place, so all deltas change."""
    body = bytearray()
    attributes = batch.attributes
    base_timestamp = batch.base_timestamp
    if new_delete_horizon_ms is None:
        for record in retained:
            body += record.data[record.start : record.end]
    else:
        attributes |= DELETE_HORIZON_FLAG_MASK
        shift = base_timestamp - new_delete_horizon_ms
        base_timestamp = new_delete_horizon_ms
        for record in retained:
            write_with_timestamp(body, record, record.timestamp_delta + shift)
    max_timestamp = batch.max_timestamp
    if batch.timestamp_type is TimestampType.CREATE_TIME:
        max_timestamp = batch.base_timestamp + max(r.timestamp_delta for r in retained)
    compression = Compression(batch.compression_type)
    built = encode_batch(
        compression.compress(body) if batch.is_compressed else body,
        base_offset=batch.base_offset,
        last_offset_delta=batch.last_offset - batch.base_offset,
        leader_epoch=batch.leader_epoch,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        count=len(retained),
    )
    return FilteredBatch(
        MemoryRecords(built),
        batch.count or 0,
        len(retained),
        max_timestamp,
        batch.last_offset,
    )


def _emptied(batch: DefaultRecordBatch) -> MemoryRecords:
    """Only the header, for the sake of its producer's epoch and sequence.

    Ports: org.apache.kafka.common.record.DefaultRecordBatch.writeEmptyHeader
    """
    return MemoryRecords(
        encode_batch(
            b"",
            base_offset=batch.base_offset,
            last_offset_delta=batch.last_offset - batch.base_offset,
            leader_epoch=batch.leader_epoch,
            attributes=batch.attributes & ~(COMPRESSION_CODEC_MASK | DELETE_HORIZON_FLAG_MASK),
            base_timestamp=NO_TIMESTAMP,
            max_timestamp=batch.max_timestamp,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            count=0,
        )
    )
