"""Batches of magic 0 and 1: one record, or a compressed message set inside one record."""

import struct
from collections.abc import Iterator
from typing import Final

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import CorruptRecordError, InvalidRecordError
from kafkapy.common.record.legacy_record import (
    ATTRIBUTES_OFFSET,
    PREFIX,
    TIMESTAMP_OFFSET,
    LegacyRecord,
    compute_crc,
    read_legacy_record,
    read_offset_and_size,
    update_crc,
)
from kafkapy.common.record.record import NO_TIMESTAMP, Record, TimestampType
from kafkapy.common.record.record_batch import (
    COMPRESSION_CODEC_MASK,
    LOG_OVERHEAD,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V1,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORD_OVERHEAD_V0,
    RECORD_OVERHEAD_V1,
    TIMESTAMP_TYPE_MASK,
    MutableRecordBatch,
)
from kafkapy.utils.varint import BytesLike

_INT64: Final = struct.Struct(">q")


class LegacyRecordBatch(MutableRecordBatch):
    """A view of the bytes of one v0 or v1 entry. Not thread-safe while a setter runs.

    Ports: org.apache.kafka.common.record.AbstractLegacyRecordBatch
    """

    __slots__ = ()

    def __init__(self, buffer: memoryview) -> None:
        """The buffer holds exactly the entry."""
        self.buffer = buffer
        self.last_offset, size, self.crc, self.magic, self.attributes = PREFIX.unpack_from(buffer)
        overhead = RECORD_OVERHEAD_V0 if self.magic == MAGIC_VALUE_V0 else RECORD_OVERHEAD_V1
        if size < overhead:
            raise CorruptRecordError(f"record of {size} bytes is smaller than its header")
        self.size_in_bytes = LOG_OVERHEAD + size
        self.max_timestamp = NO_TIMESTAMP
        if self.magic == MAGIC_VALUE_V1:
            (self.max_timestamp,) = _INT64.unpack_from(buffer, TIMESTAMP_OFFSET)
        self.leader_epoch = NO_PARTITION_LEADER_EPOCH
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.count = None

    @property
    def base_offset(self) -> int:
        if not self.is_compressed:
            return self.last_offset
        return next(self.records()).offset

    @property
    def is_valid(self) -> bool:
        return self.crc == compute_crc(self.buffer)

    def ensure_valid(self) -> None:
        computed = compute_crc(self.buffer)
        if self.crc != computed:
            raise CorruptRecordError(
                f"record at offset {self.last_offset} is corrupt: "
                f"stored crc {self.crc}, computed {computed}"
            )

    def records(self) -> Iterator[Record]:
        if self.is_compressed:
            return self._inner_records(check=False)
        outer = read_legacy_record(self.buffer)
        return iter((_to_record(outer, self.last_offset, self.max_timestamp, self.buffer),))

    def checked_records(self) -> Iterator[Record]:
        """As records; a checksum inside a compressed set is looked at before what it covers.

        Raises CorruptRecordError at the first that is wrong. Not looked at are those of records of
        another magic than the set's, which nobody may send.
        """
        return self._inner_records(check=True) if self.is_compressed else self.records()

    def set_last_offset(self, offset: int) -> None:
        self.last_offset = offset
        _INT64.pack_into(self.buffer, 0, offset)

    def set_max_timestamp(self, timestamp_type: TimestampType, max_timestamp: int) -> None:
        if self.magic == MAGIC_VALUE_V0:
            raise ValueError("magic 0 has no timestamp")
        if self.max_timestamp == max_timestamp and self.timestamp_type is timestamp_type:
            return
        if timestamp_type is TimestampType.LOG_APPEND_TIME:
            self.attributes |= TIMESTAMP_TYPE_MASK
        else:
            self.attributes &= ~TIMESTAMP_TYPE_MASK
        self.max_timestamp = max_timestamp
        self.buffer[ATTRIBUTES_OFFSET] = self.attributes & 0xFF
        _INT64.pack_into(self.buffer, TIMESTAMP_OFFSET, max_timestamp)
        self.crc = update_crc(self.buffer)

    def set_leader_epoch(self, epoch: int) -> None:
        raise ValueError(f"magic {self.magic} has no leader epoch")

    def ensure_inner_valid(self) -> None:
        """Raises CorruptRecordError unless all records of a compressed set have right checksums."""
        if not all(is_right for _, is_right in self.checksums()):
            raise CorruptRecordError("record inside a compressed message set is corrupt")

    def checksums(self) -> Iterator[tuple[int, bool]]:
        """Of each record: the one that is stored, and whether it is right."""
        for entry in _entries(self._inner_content()) if self.is_compressed else (self.buffer,):
            _, _, stored, _, _ = PREFIX.unpack_from(entry)
            yield stored, stored == compute_crc(entry)

    def _inner_records(self, *, check: bool) -> Iterator[Record]:
        content = self._inner_content()
        base_offset = self._inner_base_offset(content)
        wrapper_time: int | None = None
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            wrapper_time = self.max_timestamp
        for entry in _entries(content):
            _, _, crc, magic, attributes = PREFIX.unpack_from(entry)
            if attributes & COMPRESSION_CODEC_MASK:
                raise InvalidRecordError("record inside a compressed message set is compressed")
            if check and magic == self.magic and crc != compute_crc(entry):
                raise CorruptRecordError("record inside a compressed message set is corrupt")
            inner = read_legacy_record(entry)
            timestamp = inner.timestamp
            if inner.magic == MAGIC_VALUE_V1 and wrapper_time is not None:
                timestamp = wrapper_time
            yield _to_record(inner, base_offset + inner.offset, timestamp, entry)

    def _inner_base_offset(self, content: memoryview) -> int:
        """What to add to inner offsets; for magic 1 it follows from the last of them."""
        last_inner_offset = -1
        for entry in _entries(content):
            last_inner_offset, _ = read_offset_and_size(entry, 0)
        # A wrapper offset of 0 comes from librdkafka, which leaves it to the broker.
        if self.magic == MAGIC_VALUE_V0 or self.last_offset == 0:
            return 0
        if last_inner_offset > self.last_offset:
            raise InvalidRecordError(
                f"wrapper offset {self.last_offset} of a compressed v1 message set is less "
                f"than its last inner offset {last_inner_offset}"
            )
        return self.last_offset - last_inner_offset

    def _inner_content(self) -> memoryview:
        codec = self.compression_type
        if codec is CompressionType.ZSTD:
            raise InvalidRecordError(f"zstd is not allowed with magic {self.magic}")
        value = read_legacy_record(self.buffer).value
        if value is None:
            raise InvalidRecordError("compressed message set is null")
        return memoryview(codec.decompress(value, self.magic))


def _entries(content: memoryview) -> Iterator[memoryview]:
    """The entries of a message set.

    An incomplete one at the end is dropped: old clients cut message sets at a byte limit.
    """
    position = 0
    while len(content) - position >= LOG_OVERHEAD:
        _, size = read_offset_and_size(content, position)
        if size < RECORD_OVERHEAD_V0:
            raise CorruptRecordError(f"record of {size} bytes is smaller than its header")
        end = position + LOG_OVERHEAD + size
        if end > len(content):
            break
        yield content[position:end]
        position = end
    if position == 0:
        raise InvalidRecordError("compressed message set has no records")


def _to_record(record: LegacyRecord, offset: int, timestamp: int, entry: BytesLike) -> Record:
    return Record(
        record.magic,
        offset,
        timestamp,
        record.key,
        record.value,
        (),
        NO_SEQUENCE,
        len(entry),
    )
