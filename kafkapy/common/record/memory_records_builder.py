"""Writing batches."""

from typing import NamedTuple

from kafkapy.common.compression import NO_COMPRESSION, Compression, CompressionType
from kafkapy.common.errors import InvalidTimestampError
from kafkapy.common.record.control_record import ControlRecordType, EndTransactionMarker
from kafkapy.common.record.default_record import encode_record
from kafkapy.common.record.default_record_batch import encode_batch
from kafkapy.common.record.legacy_record import write_legacy_record
from kafkapy.common.record.record import NO_TIMESTAMP, Record, SimpleRecord, TimestampType
from kafkapy.common.record.record_batch import (
    CONTROL_FLAG_MASK,
    CURRENT_MAGIC_VALUE,
    DELETE_HORIZON_FLAG_MASK,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_FLAG_MASK,
)


class RecordsInfo(NamedTuple):
    """What an index needs to know of records just built.

    `shallow_offset_of_max_timestamp` is the last offset of the batch that holds the greatest
    timestamp; the uncompressed records of magic 0 and 1 are batches of their own.
    """

    max_timestamp: int
    shallow_offset_of_max_timestamp: int


class MemoryRecordsBuilder:
    """Builds one batch (uncompressed v0/v1: one per record) in memory; not thread-safe.

    Ports: org.apache.kafka.common.record.MemoryRecordsBuilder
    """

    __slots__ = (
        "_base_timestamp",
        "_body",
        "_last_offset",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "base_offset",
        "base_sequence",
        "compression",
        "delete_horizon_ms",
        "is_control_batch",
        "is_transactional",
        "leader_epoch",
        "log_append_time",
        "magic",
        "num_records",
        "producer_epoch",
        "producer_id",
        "timestamp_type",
    )

    def __init__(
        self,
        *,
        magic: int = CURRENT_MAGIC_VALUE,
        compression: Compression = NO_COMPRESSION,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        base_offset: int = 0,
        log_append_time: int = NO_TIMESTAMP,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
        is_transactional: bool = False,
        is_control_batch: bool = False,
        delete_horizon_ms: int | None = None,
    ) -> None:
        if magic < MAGIC_VALUE_V2:
            if is_transactional or is_control_batch or delete_horizon_ms is not None:
                raise ValueError(f"magic {magic} has no transactions, control batches or horizons")
            if compression.type is CompressionType.ZSTD:
                raise ValueError(f"zstd is not allowed with magic {magic}")
        self.magic = magic
        self.compression = compression
        self.timestamp_type = timestamp_type
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.leader_epoch = leader_epoch
        self.is_transactional = is_transactional
        self.is_control_batch = is_control_batch
        self.delete_horizon_ms = delete_horizon_ms
        self.num_records = 0
        self._body = bytearray()
        self._base_timestamp: int | None = delete_horizon_ms
        self._last_offset: int | None = None
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = -1

    @property
    def uncompressed_bytes_written(self) -> int:
        """The size of the records before compression."""
        return len(self._body)

    def append(self, record: SimpleRecord) -> None:
        """Appends at the next offset."""
        last = self._last_offset
        self.append_with_offset(self.base_offset if last is None else last + 1, record)

    def append_with_offset(self, offset: int, record: SimpleRecord | Record) -> None:
        """Appends at a greater offset than the last; magic 0 and 1 drop the headers."""
        if self._last_offset is not None and offset <= self._last_offset:
            raise ValueError(f"offset {offset} follows {self._last_offset}")
        timestamp = record.timestamp
        if timestamp < 0 and timestamp != NO_TIMESTAMP:
            raise InvalidTimestampError(f"invalid negative timestamp {timestamp}")
        if self._base_timestamp is None:
            self._base_timestamp = timestamp
        if self.magic >= MAGIC_VALUE_V2:
            self._body += encode_record(
                timestamp - self._base_timestamp,
                offset - self.base_offset,
                record.key,
                record.value,
                record.headers,
            )
        else:
            self._append_legacy(offset, timestamp, record)
        self._last_offset = offset
        self.num_records += 1
        if self.magic > MAGIC_VALUE_V0 and timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
            self._offset_of_max_timestamp = offset

    def append_end_txn_marker(self, timestamp: int, marker: EndTransactionMarker) -> None:
        """Appends the control record that ends a transaction."""
        if self.producer_id == NO_PRODUCER_ID or not self.is_transactional:
            raise ValueError("an end transaction marker needs a transactional batch")
        self.append_control_record(timestamp, marker.control_type, marker.value())

    def append_control_record(
        self, timestamp: int, control_type: ControlRecordType, value: bytes
    ) -> None:
        """Appends a control record; the batch must be a control batch."""
        if not self.is_control_batch:
            raise ValueError("control records belong in control batches")
        self.append(SimpleRecord(timestamp, control_type.key(), value))

    def info(self) -> RecordsInfo:
        """The greatest timestamp and where it is."""
        one_batch = self.magic >= MAGIC_VALUE_V2 or self._is_compressed
        last_offset = -1 if self._last_offset is None else self._last_offset
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return RecordsInfo(self.log_append_time, last_offset if one_batch else self.base_offset)
        if self._max_timestamp == NO_TIMESTAMP:
            return RecordsInfo(NO_TIMESTAMP, -1)
        return RecordsInfo(
            self._max_timestamp, last_offset if one_batch else self._offset_of_max_timestamp
        )

    def build(self) -> bytearray:
        """The bytes of the batch, empty when nothing was appended."""
        if self._last_offset is None:
            return bytearray()
        if self.magic >= MAGIC_VALUE_V2:
            return self._build_default(self._last_offset)
        if self._is_compressed:
            return self._build_legacy_wrapper(self._last_offset)
        return bytearray(self._body)

    @property
    def _is_compressed(self) -> bool:
        return self.compression.type is not CompressionType.NONE

    @property
    def _batch_timestamp(self) -> int:
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            return self.log_append_time
        return self._max_timestamp

    def _append_legacy(self, offset: int, timestamp: int, record: SimpleRecord | Record) -> None:
        if not self._is_compressed and self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            timestamp = self.log_append_time
        relative = self._is_compressed and self.magic > MAGIC_VALUE_V0
        write_legacy_record(
            self._body,
            offset=offset - self.base_offset if relative else offset,
            magic=self.magic,
            timestamp=timestamp,
            key=record.key,
            value=record.value,
            timestamp_type=self.timestamp_type,
        )

    def _build_default(self, last_offset: int) -> bytearray:
        body = self.compression.compress(self._body) if self._is_compressed else self._body
        attributes = int(self.compression.type)
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            attributes |= TIMESTAMP_TYPE_MASK
        if self.is_transactional:
            attributes |= TRANSACTIONAL_FLAG_MASK
        if self.is_control_batch:
            attributes |= CONTROL_FLAG_MASK
        if self.delete_horizon_ms is not None:
            attributes |= DELETE_HORIZON_FLAG_MASK
        return encode_batch(
            body,
            count=self.num_records,
            attributes=attributes,
            last_offset_delta=last_offset - self.base_offset,
            base_timestamp=NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            max_timestamp=self._batch_timestamp,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            base_offset=self.base_offset,
            leader_epoch=self.leader_epoch,
        )

    def _build_legacy_wrapper(self, last_offset: int) -> bytearray:
        out = bytearray()
        write_legacy_record(
            out,
            offset=last_offset,
            magic=self.magic,
            timestamp=self._batch_timestamp,
            key=None,
            value=self.compression.compress(self._body, self.magic),
            codec=self.compression.type,
            timestamp_type=self.timestamp_type,
        )
        return out
