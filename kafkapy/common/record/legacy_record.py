"""Records of magic 0 and 1, which are also the batches of those formats.

    offset int64 | size int32 | crc uint32 | magic int8 | attributes int8
    | [timestamp int64: magic 1 only] | key size int32 (-1: null) | key
    | value size int32 (-1: null) | value

The CRC-32 covers everything from the magic on. A compressed record's value is a message set of its
own: with magic 0 its offsets are absolute; with magic 1 they count from 0 and the wrapper's offset
is that of the last one.
"""

import struct
from typing import Final, NamedTuple

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import CorruptRecordError, InvalidRecordError
from kafkapy.common.record.record import NO_TIMESTAMP, TimestampType
from kafkapy.common.record.record_batch import (
    LOG_OVERHEAD,
    MAGIC_VALUE_V0,
    MAGIC_VALUE_V1,
    RECORD_OVERHEAD_V0,
    RECORD_OVERHEAD_V1,
    TIMESTAMP_TYPE_MASK,
)
from kafkapy.utils.checksums import crc32
from kafkapy.utils.varint import BytesLike

PREFIX: Final = struct.Struct(">qiIbb")  # offset, size, crc, magic, attributes
_OFFSET_AND_SIZE: Final = struct.Struct(">qi")
_INT64: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_UINT32: Final = struct.Struct(">I")

CRC_OFFSET: Final = 12
CRC_START: Final = 16  # the magic: the first byte under the checksum
ATTRIBUTES_OFFSET: Final = 17
TIMESTAMP_OFFSET: Final = 18


class LegacyRecord(NamedTuple):
    """The decoded fields of one v0/v1 record; `offset` as stored.

    Ports: org.apache.kafka.common.record.LegacyRecord
    """

    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def record_overhead(magic: int) -> int:
    """The size of a record with null key and value, without offset and size."""
    return RECORD_OVERHEAD_V0 if magic == MAGIC_VALUE_V0 else RECORD_OVERHEAD_V1


def read_legacy_record(entry: BytesLike) -> LegacyRecord:
    """Decodes one entry (offset, size, record); InvalidRecordError when its fields do not fit."""
    if len(entry) < LOG_OVERHEAD + RECORD_OVERHEAD_V0:
        raise CorruptRecordError(f"record of {len(entry)} bytes is smaller than its header")
    offset, _, crc, magic, attributes = PREFIX.unpack_from(entry)
    position = PREFIX.size
    timestamp = NO_TIMESTAMP
    try:
        if magic == MAGIC_VALUE_V1:
            (timestamp,) = _INT64.unpack_from(entry, position)
            position += 8
        key, position = _read_bytes(entry, position)
        value, position = _read_bytes(entry, position)
    except struct.error as error:
        raise InvalidRecordError("record ends inside a field") from error
    return LegacyRecord(offset, crc, magic, attributes, timestamp, key, value)


def write_legacy_record(
    out: bytearray,
    *,
    offset: int,
    magic: int,
    timestamp: int,
    key: bytes | None,
    value: BytesLike | None,
    codec: CompressionType = CompressionType.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> None:
    """Appends one entry, its checksum included."""
    size = record_overhead(magic) + len(key or b"") + (0 if value is None else len(value))
    attributes = int(codec)
    if magic == MAGIC_VALUE_V1 and timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    start = len(out)
    out += PREFIX.pack(offset, size, 0, magic, attributes)
    if magic == MAGIC_VALUE_V1:
        out += _INT64.pack(timestamp)
    _write_bytes(out, key)
    _write_bytes(out, value)
    update_crc(memoryview(out)[start:])


def compute_crc(entry: BytesLike) -> int:
    return crc32(memoryview(entry)[CRC_START:])


def update_crc(entry: memoryview) -> int:
    """Stores and returns the checksum of a writable entry."""
    crc = compute_crc(entry)
    _UINT32.pack_into(entry, CRC_OFFSET, crc)
    return crc


def read_offset_and_size(data: BytesLike, position: int) -> tuple[int, int]:
    """The two fields every entry starts with."""
    offset, size = _OFFSET_AND_SIZE.unpack_from(data, position)
    return offset, size


def _read_bytes(entry: BytesLike, position: int) -> tuple[bytes | None, int]:
    (size,) = _INT32.unpack_from(entry, position)
    position += 4
    if size < 0:
        return None, position
    if size > len(entry) - position:
        raise InvalidRecordError(f"record field of {size} bytes does not fit the record")
    return bytes(entry[position : position + size]), position + size


def _write_bytes(out: bytearray, value: BytesLike | None) -> None:
    if value is None:
        out += _INT32.pack(-1)
    else:
        out += _INT32.pack(len(value))
        out += value
