"""Records in memory: one buffer with any number of batches one after another."""

import struct
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from kafkapy.common.compression import NO_COMPRESSION, Compression
from kafkapy.common.errors import CorruptRecordError
from kafkapy.common.record.control_record import EndTransactionMarker
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.legacy_record_batch import LegacyRecordBatch
from kafkapy.common.record.memory_records_builder import MemoryRecordsBuilder
from kafkapy.common.record.record import NO_TIMESTAMP, Record, SimpleRecord, TimestampType
from kafkapy.common.record.record_batch import (
    CURRENT_MAGIC_VALUE,
    HEADER_SIZE_UP_TO_MAGIC,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_VALUE_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    OFFSET_LENGTH,
    RECORD_OVERHEAD_V0,
    MutableRecordBatch,
)
from kafkapy.utils.varint import BytesLike

_INT32: Final = struct.Struct(">i")


class MemoryRecords:
    """Batches in a buffer; thread-safe as long as nobody changes a batch.

    Batches are decoded once and kept, so that a batch changed in place is seen by every later
    reader of the same MemoryRecords.

    Ports: org.apache.kafka.common.record.MemoryRecords
    """

    __slots__ = ("_batches", "buffer")

    EMPTY: ClassVar["MemoryRecords"]

    def __init__(self, buffer: BytesLike) -> None:
        self.buffer = memoryview(buffer)
        self._batches: list[MutableRecordBatch] | None = None

    @staticmethod
    def with_records(
        *records: SimpleRecord,
        compression: Compression = NO_COMPRESSION,
        magic: int = CURRENT_MAGIC_VALUE,
        initial_offset: int = 0,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        log_append_time: int = NO_TIMESTAMP,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
        is_transactional: bool = False,
    ) -> "MemoryRecords":
        """One batch with consecutive offsets (uncompressed v0/v1: one batch per record)."""
        builder = MemoryRecordsBuilder(
            magic=magic,
            compression=compression,
            timestamp_type=timestamp_type,
            base_offset=initial_offset,
            log_append_time=log_append_time,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            leader_epoch=leader_epoch,
            is_transactional=is_transactional,
        )
        for record in records:
            builder.append(record)
        return MemoryRecords(builder.build())

    @staticmethod
    def with_end_transaction_marker(
        marker: EndTransactionMarker,
        *,
        timestamp: int,
        producer_id: int,
        producer_epoch: int,
        initial_offset: int = 0,
        leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    ) -> "MemoryRecords":
        """The control batch that ends a transaction."""
        builder = MemoryRecordsBuilder(
            base_offset=initial_offset,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            leader_epoch=leader_epoch,
            is_transactional=True,
            is_control_batch=True,
        )
        builder.append_end_txn_marker(timestamp, marker)
        return MemoryRecords(builder.build())

    @property
    def size_in_bytes(self) -> int:
        return len(self.buffer)

    @property
    def valid_bytes(self) -> int:
        """The size of all whole batches: what remains of a buffer cut inside its last batch."""
        return sum(batch.size_in_bytes for batch in self.batches())

    def batches(self) -> Sequence[MutableRecordBatch]:
        """The whole batches; an incomplete one at the end is left out.

        Raises CorruptRecordError for a batch with an impossible size or an unknown magic.
        """
        batches = self._batches
        if batches is None:
            batches = self._batches = _decode_batches(self.buffer)
        return batches

    def records(self) -> Iterator[Record]:
        """The records of all batches."""
        for batch in self.batches():
            yield from batch.records()

    def first_batch_size(self) -> int | None:
        """The size of the first batch, whole or not; None when too little is there to tell."""
        return _next_batch_size(self.buffer, 0)

    def has_matching_magic(self, magic: int) -> bool:
        """Whether all batches have this magic."""
        return all(batch.magic == magic for batch in self.batches())

    def __len__(self) -> int:
        return len(self.buffer)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryRecords) and self.buffer == other.buffer

    def __hash__(self) -> int:
        return hash(bytes(self.buffer))

    def __repr__(self) -> str:
        return f"MemoryRecords(size={len(self.buffer)})"


def _decode_batches(buffer: memoryview) -> list[MutableRecordBatch]:
    batches: list[MutableRecordBatch] = []
    position = 0
    total = len(buffer)
    while True:
        size = _next_batch_size(buffer, position)
        if size is None or size > total - position:
            return batches
        batch = buffer if size == total else buffer[position : position + size]
        if batch[MAGIC_OFFSET] == MAGIC_VALUE_V2:
            batches.append(DefaultRecordBatch(batch))
        else:
            batches.append(LegacyRecordBatch(batch))
        position += size


def _next_batch_size(buffer: memoryview, position: int) -> int | None:
    remaining = len(buffer) - position
    if remaining < LOG_OVERHEAD:
        return None
    size: int = _INT32.unpack_from(buffer, position + OFFSET_LENGTH)[0]
    if size < RECORD_OVERHEAD_V0:
        raise CorruptRecordError(
            f"record size {size} is less than the smallest possible, {RECORD_OVERHEAD_V0}"
        )
    if remaining < HEADER_SIZE_UP_TO_MAGIC:
        return None
    magic = buffer[position + MAGIC_OFFSET]
    if magic > CURRENT_MAGIC_VALUE:
        raise CorruptRecordError(f"batch has an unknown magic {magic}")
    return LOG_OVERHEAD + size


MemoryRecords.EMPTY = MemoryRecords(b"")
