"""Batches of magic 2.

    base offset int64 | length int32 | partition leader epoch int32 | magic int8 | crc uint32
    | attributes int16 | last offset delta int32 | base timestamp int64 | max timestamp int64
    | producer id int64 | producer epoch int16 | base sequence int32 | count int32 | records

The CRC-32C covers everything from the attributes on: offsets and the leader epoch can be assigned
by a broker without touching it.
"""

import struct
from collections.abc import Iterator
from typing import Final

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import CorruptRecordError, InvalidRecordError
from kafkapy.common.record.default_record import read_records
from kafkapy.common.record.record import Record, TimestampType
from kafkapy.common.record.record_batch import (
    DELETE_HORIZON_FLAG_MASK,
    LOG_OVERHEAD,
    MAGIC_VALUE_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    MutableRecordBatch,
    increment_sequence,
)
from kafkapy.common.record.record_input import RecordInput, SectionInput
from kafkapy.utils.checksums import crc32c
from kafkapy.utils.varint import BytesLike

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
CRC_START: Final = 21  # the attributes: the first byte under the checksum

_INT64: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")
_INT16: Final = struct.Struct(">h")
_LEADER_EPOCH_OFFSET: Final = 12
_CRC_OFFSET: Final = 17
_ATTRIBUTES_OFFSET: Final = 21
_MAX_TIMESTAMP_OFFSET: Final = 35

# Codec, timestamp type, transactional, control, delete horizon.
_ATTRIBUTES_IN_USE: Final = 0x7F


def encode_batch(
    body: BytesLike,
    *,
    count: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    base_offset: int = 0,
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytearray:
    """The batch around a records section, which is compressed already if it is to be."""
    out = bytearray(
        HEADER.pack(
            base_offset,
            RECORD_BATCH_OVERHEAD + len(body) - LOG_OVERHEAD,
            leader_epoch,
            MAGIC_VALUE_V2,
            0,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
    )
    _UINT32.pack_into(out, _CRC_OFFSET, crc32c(body, crc32c(memoryview(out)[CRC_START:])))
    out += body
    return out


class DefaultRecordBatch(MutableRecordBatch):
    """A view of the bytes of one v2 batch. Not thread-safe while a setter runs.

    Ports: org.apache.kafka.common.record.DefaultRecordBatch
    """

    __slots__ = ("_base_offset", "base_timestamp", "last_offset_delta")

    _base_offset: int
    base_timestamp: int
    last_offset_delta: int

    def __init__(self, buffer: memoryview) -> None:
        """The buffer holds exactly the batch."""
        if len(buffer) < RECORD_BATCH_OVERHEAD:
            raise CorruptRecordError(
                f"batch of {len(buffer)} bytes is smaller than its header ({RECORD_BATCH_OVERHEAD})"
            )
        self.buffer = buffer
        (
            self._base_offset,
            length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = HEADER.unpack_from(buffer)
        self.size_in_bytes = LOG_OVERHEAD + length
        self.last_offset = self._base_offset + self.last_offset_delta

    @property
    def base_offset(self) -> int:
        return self._base_offset

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When a compacted batch's tombstones may go; the base timestamp's place holds it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG_MASK else None

    @property
    def is_valid(self) -> bool:
        return self.crc == crc32c(self.buffer[CRC_START:])

    def ensure_valid(self) -> None:
        computed = crc32c(self.buffer[CRC_START:])
        if self.crc != computed:
            raise CorruptRecordError(
                f"batch at offset {self._base_offset} is corrupt: "
                f"stored crc {self.crc}, computed {computed}"
            )

    def record_input(self) -> RecordInput:
        """The records section for a reader, decompressed piece by piece where it is compressed."""
        section = self.buffer[RECORD_BATCH_OVERHEAD:]
        codec = self.compression_type
        if codec is not CompressionType.NONE:
            return RecordInput(b"", codec.decompress_pieces(section, self.magic))
        return SectionInput(section)

    def records(self) -> Iterator[Record]:
        count = self.count
        if count is None or count < 0:
            raise InvalidRecordError(f"batch declares {count} records")
        timestamp_type = self.timestamp_type
        return read_records(
            self.record_input(),
            count=count,
            base_offset=self._base_offset,
            base_timestamp=self.base_timestamp,
            base_sequence=self.base_sequence,
            log_append_time=(
                self.max_timestamp if timestamp_type is TimestampType.LOG_APPEND_TIME else None
            ),
        )

    def set_last_offset(self, offset: int) -> None:
        self._base_offset = offset - self.last_offset_delta
        self.last_offset = offset
        _INT64.pack_into(self.buffer, 0, self._base_offset)

    def set_leader_epoch(self, epoch: int) -> None:
        self.leader_epoch = epoch
        _INT32.pack_into(self.buffer, _LEADER_EPOCH_OFFSET, epoch)

    def set_max_timestamp(self, timestamp_type: TimestampType, max_timestamp: int) -> None:
        if self.max_timestamp == max_timestamp and self.timestamp_type is timestamp_type:
            return
        # Bits without a meaning do not outlive the change, as in Kafka.
        self.attributes &= _ATTRIBUTES_IN_USE & ~TIMESTAMP_TYPE_MASK
        if timestamp_type is TimestampType.LOG_APPEND_TIME:
            self.attributes |= TIMESTAMP_TYPE_MASK
        self.max_timestamp = max_timestamp
        _INT16.pack_into(self.buffer, _ATTRIBUTES_OFFSET, self.attributes)
        _INT64.pack_into(self.buffer, _MAX_TIMESTAMP_OFFSET, max_timestamp)
        self.crc = crc32c(self.buffer[CRC_START:])
        _UINT32.pack_into(self.buffer, _CRC_OFFSET, self.crc)
