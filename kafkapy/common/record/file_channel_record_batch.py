"""Batches of a file, known by their headers until their records are wanted."""

import struct
from collections.abc import Iterator
from typing import Final, Protocol

from kafkapy.common.errors import CorruptRecordError
from kafkapy.common.record.default_record_batch import HEADER
from kafkapy.common.record.legacy_record import PREFIX, TIMESTAMP_OFFSET
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import NO_TIMESTAMP, Record
from kafkapy.common.record.record_batch import (
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V1,
    MAGIC_VALUE_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    MutableRecordBatch,
    RecordBatch,
)

_INT64: Final = struct.Struct(">q")


class PositionedReader(Protocol):
    """Where a batch's bytes come from."""

    def read(self, position: int, size: int) -> bytes: ...


class FileChannelRecordBatch(RecordBatch):
    """A batch at a position of a file; header fields are in memory, the rest is read on demand.

    Not thread-safe. Reading the records of a file that was cut meanwhile raises
    CorruptRecordError.

    Ports: org.apache.kafka.common.record.FileLogInputStream.FileChannelRecordBatch
    """

    __slots__ = ("_base_offset", "_full_batch", "_source", "base_timestamp", "position")

    _base_offset: int
    base_timestamp: int

    def __init__(self, source: PositionedReader, position: int, header: bytes) -> None:
        """`header`: the batch's first 61 bytes, fewer only where an old batch is smaller."""
        self._source = source
        self.position = position
        self._full_batch: MutableRecordBatch | None = None
        magic = header[MAGIC_OFFSET]
        if magic > MAGIC_VALUE_V2:
            raise CorruptRecordError(f"batch at position {position} has an unknown magic {magic}")
        if magic == MAGIC_VALUE_V2:
            self._decode_default(header)
        else:
            self._decode_legacy(header)

    @property
    def base_offset(self) -> int:
        if self.magic < MAGIC_VALUE_V2 and self.is_compressed:
            return self.load_full_batch().base_offset
        return self._base_offset

    @property
    def is_valid(self) -> bool:
        return self.load_full_batch().is_valid

    def ensure_valid(self) -> None:
        self.load_full_batch().ensure_valid()

    def records(self) -> Iterator[Record]:
        return self.load_full_batch().records()

    def to_bytes(self) -> memoryview:
        return self.load_full_batch().buffer

    def load_full_batch(self) -> MutableRecordBatch:
        """The whole batch in memory, read once."""
        batch = self._full_batch
        if batch is None:
            try:
                data = self._source.read(self.position, self.size_in_bytes)
            except ValueError:
                data = b""  # the file was cut before this batch
            batch = next(iter(MemoryRecords(data).batches()), None)
            if batch is None or batch.size_in_bytes != self.size_in_bytes:
                raise CorruptRecordError(f"batch at position {self.position} is not in the file")
            self._full_batch = batch
        return batch

    def _decode_default(self, header: bytes) -> None:
        if len(header) < RECORD_BATCH_OVERHEAD:
            raise CorruptRecordError(f"batch at position {self.position} has half a header")
        (
            self._base_offset,
            length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack(header)
        self.last_offset = self._base_offset + last_offset_delta
        self.size_in_bytes = LOG_OVERHEAD + length
        if self.size_in_bytes < RECORD_BATCH_OVERHEAD:
            raise CorruptRecordError(f"batch at position {self.position} is shorter than a header")

    def _decode_legacy(self, header: bytes) -> None:
        self._base_offset, length, self.crc, self.magic, self.attributes = PREFIX.unpack_from(
            header
        )
        self.last_offset = self._base_offset
        self.size_in_bytes = LOG_OVERHEAD + length
        self.max_timestamp = NO_TIMESTAMP
        if self.magic == MAGIC_VALUE_V1:
            (self.max_timestamp,) = _INT64.unpack_from(header, TIMESTAMP_OFFSET)
        self.base_timestamp = self.max_timestamp
        self.leader_epoch = NO_PARTITION_LEADER_EPOCH
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.count = None
