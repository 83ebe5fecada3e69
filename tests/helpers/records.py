"""Builders of records with defaults, and of batches no client would send."""

import struct
from typing import Any

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.record.control_record import ControlRecordType, EndTransactionMarker
from kafkapy.common.record.default_record import encode_record
from kafkapy.common.record.default_record_batch import CRC_START, HEADER
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord, TimestampType
from kafkapy.common.record.record_batch import (
    LOG_OVERHEAD,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)
from kafkapy.utils.checksums import crc32c

TIMESTAMP = 1_700_000_000_000

_HEADER_FIELDS = (
    "base_offset",
    "length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "count",
)


def record(
    value: str | bytes | None = "value",
    *,
    key: str | bytes | None = None,
    timestamp: int = TIMESTAMP,
) -> SimpleRecord:
    """One record from text."""
    return SimpleRecord(timestamp, _to_bytes(key), _to_bytes(value))


def records(
    *values: str | bytes | SimpleRecord,
    offset: int = 0,
    codec: CompressionType = CompressionType.NONE,
    magic: int = 2,
    key: str | bytes | None = None,
    timestamp: int = TIMESTAMP,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    log_append_time: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    transactional: bool = False,
) -> MemoryRecords:
    """One batch in a writable buffer: `records("a", "b", offset=50)`."""
    simple = [
        value if isinstance(value, SimpleRecord) else record(value, key=key, timestamp=timestamp)
        for value in values or ("value",)
    ]
    return MemoryRecords.with_records(
        *simple,
        compression=Compression(codec),
        magic=magic,
        initial_offset=offset,
        timestamp_type=timestamp_type,
        log_append_time=log_append_time,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        leader_epoch=leader_epoch,
        is_transactional=transactional,
    )


def end_txn_marker(
    control_type: ControlRecordType = ControlRecordType.COMMIT,
    *,
    offset: int = 0,
    producer_id: int = 7,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp: int = TIMESTAMP,
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> MemoryRecords:
    """The control batch that commits (or aborts) a transaction."""
    return MemoryRecords.with_end_transaction_marker(
        EndTransactionMarker(control_type, coordinator_epoch),
        timestamp=timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        initial_offset=offset,
        leader_epoch=leader_epoch,
    )


def joined(*parts: MemoryRecords) -> MemoryRecords:
    """Several batches in one writable buffer."""
    return MemoryRecords(bytearray(b"".join(bytes(part.buffer) for part in parts)))


def values(source: MemoryRecords) -> list[bytes | None]:
    """The values of all records."""
    return [found.value for found in source.records()]


def forged(source: MemoryRecords, *, fix_crc: bool = True, **fields: int) -> MemoryRecords:
    """The first v2 batch of source with header fields replaced: `forged(records(), count=3)`.

    The checksum is made to fit unless told otherwise or given.
    """
    data = bytearray(source.buffer)
    header: dict[str, Any] = dict(zip(_HEADER_FIELDS, HEADER.unpack_from(data), strict=True))
    unknown = fields.keys() - header.keys()
    assert not unknown, f"no such header field: {unknown}"
    header.update(fields)
    HEADER.pack_into(data, 0, *header.values())
    if fix_crc and "crc" not in fields:
        fix_crc_of(data)
    return MemoryRecords(data)


def forged_body(
    body: bytes,
    *,
    count: int = 1,
    codec: int = 0,
    last_offset_delta: int | None = None,
    **fields: int,
) -> MemoryRecords:
    """A v2 batch around any bytes: `body` is the records section as stored."""
    template = bytearray(records().buffer[: HEADER.size]) + body
    return forged(
        MemoryRecords(template),
        length=len(template) - LOG_OVERHEAD,
        count=count,
        attributes=codec,
        last_offset_delta=count - 1 if last_offset_delta is None else last_offset_delta,
        fix_crc=True,
        **fields,
    )


def record_bytes(
    value: bytes | None = b"value",
    *,
    key: bytes | None = None,
    timestamp_delta: int = 0,
    offset_delta: int = 0,
) -> bytes:
    """One v2 record as stored."""
    return encode_record(timestamp_delta, offset_delta, key, value)


def fix_crc_of(batch: bytearray) -> None:
    """Makes the checksum of a v2 batch fit."""
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[CRC_START:]))


def _to_bytes(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text
