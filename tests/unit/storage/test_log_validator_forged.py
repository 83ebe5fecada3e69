"""Batches no honest client sends: each gets Kafka's error and leaves the buffer as it came."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import (
    CorruptRecordError,
    Errors,
    InvalidRecordError,
    InvalidTimestampError,
    KafkaError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkapy.common.record.legacy_record import (
    ATTRIBUTES_OFFSET,
    update_crc,
    write_legacy_record,
)
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord
from kafkapy.storage.log_validator import validate_produce_records
from kafkapy.utils.varint import write_varint
from tests.helpers.records import (
    end_txn_marker,
    forged,
    forged_body,
    joined,
    record,
    record_bytes,
    records,
)
from tests.unit.common.record.strategies import records_lists
from tests.unit.storage.validation import CountingRecorder, validate

NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType
CORRUPT, INVALID, UNSUPPORTED, TIMESTAMP, TOO_LARGE = (
    Errors.CORRUPT_MESSAGE,
    Errors.INVALID_RECORD,
    Errors.UNSUPPORTED_COMPRESSION_TYPE,
    Errors.INVALID_TIMESTAMP,
    Errors.MESSAGE_TOO_LARGE,
)

ONE = record_bytes(b"value", key=b"key")
TWO = record_bytes(b"a") + record_bytes(b"b", offset_delta=1)


def append(source: MemoryRecords, recorder: CountingRecorder | None = None) -> None:
    """What a produce request goes through: its own checks, the checksum, the validator."""
    validate_produce_records(9, source)
    for batch in source.batches():
        batch.ensure_valid()
    validate(source, recorder=recorder)


def append_old(source: MemoryRecords) -> None:
    """The same for an old produce request, which may carry message sets."""
    validate_produce_records(2, source)
    for batch in source.batches():
        batch.ensure_valid()
    validate(source)


def flipped(source: MemoryRecords, position: int) -> MemoryRecords:
    data = bytearray(source.buffer)
    data[position] ^= 0x01
    return MemoryRecords(data)


def replaced(data: bytes, position: int, byte: int) -> bytes:
    return data[:position] + bytes((byte,)) + data[position + 1 :]


def with_length(body: bytes, change: int) -> bytes:
    """The record with another length than it has."""
    return bytes((body[0] + 2 * change,)) + body[1:]


def old_record(value: bytes | None, *, codec: int = 0, magic: int = 1, offset: int = 0) -> bytes:
    out = bytearray()
    write_legacy_record(out, offset=offset, magic=magic, timestamp=5, key=None, value=value)
    out[ATTRIBUTES_OFFSET] |= codec
    update_crc(memoryview(out))
    return bytes(out)


def old(value: bytes | None, *, codec: int = 0, magic: int = 1, offset: int = 0) -> MemoryRecords:
    return MemoryRecords(bytearray(old_record(value, codec=codec, magic=magic, offset=offset)))


def bomb(codec: CompressionType) -> MemoryRecords:
    """One record of 80 MiB."""
    size = 80 * 1024 * 1024
    tail = bytearray(b"\x00\x00\x00\x01")
    write_varint(tail, size)
    head = bytearray()
    write_varint(head, len(tail) + size + 1)
    return forged_body(codec.compress(bytes(head + tail) + bytes(size + 1)), codec=codec)


FORGED = {
    # checksum
    "crc of zero": (lambda: forged(records(), crc=0), CORRUPT),
    "crc of all ones": (lambda: forged(records(), crc=2**32 - 1), CORRUPT),
    "flipped attributes": (lambda: flipped(records(), 22), CORRUPT),
    "flipped last offset delta": (lambda: flipped(records(), 26), CORRUPT),
    "flipped base timestamp": (lambda: flipped(records(), 30), CORRUPT),
    "flipped max timestamp": (lambda: flipped(records(), 40), CORRUPT),
    "flipped producer id": (lambda: flipped(records(), 50), CORRUPT),
    "flipped producer epoch": (lambda: flipped(records(), 52), CORRUPT),
    "flipped sequence": (lambda: flipped(records(), 56), CORRUPT),
    "flipped count": (lambda: flipped(records(), 60), CORRUPT),
    "flipped record": (lambda: flipped(records(), 65), CORRUPT),
    # magic
    "magic 3": (lambda: forged(records(), magic=3), CORRUPT),
    "magic 127": (lambda: forged(records(), magic=127), CORRUPT),
    "magic -1": (lambda: forged(records(), magic=-1), CORRUPT),
    "magic 1 in produce v3+": (lambda: records(magic=1), INVALID),
    "magic 0 in produce v3+": (lambda: records(magic=0), INVALID),
    # sizes
    "no batch": (lambda: MemoryRecords.EMPTY, INVALID),
    "half a batch": (lambda: MemoryRecords(records().buffer[:40]), INVALID),
    "length -1": (lambda: forged(records(), length=-1), CORRUPT),
    "length 0": (lambda: forged(records(), length=0), CORRUPT),
    "length 13": (lambda: forged(records(), length=13), CORRUPT),
    "length smaller than the header": (lambda: forged(records(), length=48), CORRUPT),
    "length more than there is": (lambda: forged(records(), length=1000), INVALID),
    "largest length": (lambda: forged(records(), length=2**31 - 1), INVALID),
    "length cuts the record": (lambda: forged(records(), length=49 + 3, crc=0), CORRUPT),
    "two batches": (lambda: joined(records("a"), records("b", offset=1)), INVALID),
    "header only, one record": (lambda: forged_body(b""), INVALID),
    # counts and offsets
    "count 0": (lambda: forged(records(), count=0), INVALID),
    "count -1": (lambda: forged(records(), count=-1), INVALID),
    "count too large": (lambda: forged(records(), count=2), INVALID),
    "largest count": (lambda: forged(records(), count=2**31 - 1), INVALID),
    "count too small": (lambda: forged(records("a", "b"), count=1), INVALID),
    "count and offsets too large": (lambda: forged_body(ONE, count=2), INVALID),
    "count and offsets huge": (lambda: forged_body(ONE, count=2**31 - 1), INVALID),
    "count and offsets too small": (lambda: forged_body(TWO, count=1), INVALID),
    "last offset delta -1": (lambda: forged(records(), last_offset_delta=-1), INVALID),
    "last offset delta too large": (lambda: forged(records(), last_offset_delta=5), INVALID),
    "smallest last offset delta": (lambda: forged(records(), last_offset_delta=-(2**31)), INVALID),
    "count 0 without records": (lambda: forged_body(b"", count=0, last_offset_delta=-1), INVALID),
    # deltas
    "offset deltas repeat": (lambda: forged_body(record_bytes() * 2, count=2), INVALID),
    "offset delta skips": (
        lambda: forged_body(record_bytes() + record_bytes(offset_delta=2), count=2),
        INVALID,
    ),
    "offset delta negative": (lambda: forged_body(record_bytes(offset_delta=-1)), INVALID),
    "offset deltas swapped": (
        lambda: forged_body(record_bytes(offset_delta=1) + record_bytes(), count=2),
        INVALID,
    ),
    "compressed offset deltas repeat": (
        lambda: forged_body(LZ4.compress(record_bytes() * 2), count=2, codec=LZ4),
        INVALID,
    ),
    # varints
    "length varint cut": (lambda: forged_body(b"\x80"), INVALID),
    "length varint too long": (lambda: forged_body(b"\xff" * 6 + ONE), INVALID),
    "record length negative": (lambda: forged_body(b"\x01" + ONE[1:]), INVALID),
    "record length too large": (lambda: forged_body(with_length(ONE, 1)), INVALID),
    "record length too small": (lambda: forged_body(with_length(ONE, -1)), INVALID),
    "record length 0": (lambda: forged_body(b"\x00"), INVALID),
    "timestamp varlong too long": (
        lambda: forged_body(with_length(ONE[:2] + b"\xff" * 11 + ONE[3:], 10)),
        INVALID,
    ),
    "key length past the record": (lambda: forged_body(ONE[:4] + b"\x7e" + ONE[5:]), INVALID),
    "key length of 2 GiB": (
        lambda: forged_body(with_length(ONE[:4] + b"\xfe\xff\xff\xff\x0f" + ONE[5:], 4)),
        INVALID,
    ),
    "value length past the record": (lambda: forged_body(ONE[:8] + b"\x7e" + ONE[9:]), INVALID),
    "negative header count": (lambda: forged_body(ONE[:-1] + b"\x01"), INVALID),
    "headers that are not there": (lambda: forged_body(ONE[:-1] + b"\x04"), INVALID),
    "trailing byte": (lambda: forged_body(ONE + b"\x00"), INVALID),
    "trailing byte, compressed": (
        lambda: forged_body(ZSTD.compress(ONE + b"\x00"), codec=ZSTD),
        INVALID,
    ),
    "record cut, compressed": (lambda: forged_body(GZIP.compress(ONE[:-1]), codec=GZIP), INVALID),
    # timestamps
    "base timestamp overflows": (
        lambda: forged_body(record_bytes(timestamp_delta=1), base_timestamp=2**63 - 1),
        TIMESTAMP,
    ),
    "base timestamp underflows": (
        lambda: forged_body(record_bytes(timestamp_delta=-5), base_timestamp=-(2**63)),
        TIMESTAMP,
    ),
    # attributes
    "control batch": (end_txn_marker, INVALID),
    "control flag on data": (lambda: forged(records(), attributes=0x20), INVALID),
    "codec 5": (lambda: forged(records(), attributes=5), UNSUPPORTED),
    "codec 6": (lambda: forged(records(), attributes=6), UNSUPPORTED),
    "codec 7": (lambda: forged(records(), attributes=7), UNSUPPORTED),
    "producer without sequence": (lambda: forged(records(), producer_id=7), INVALID),
    "producer with sequence -2": (
        lambda: forged(records(), producer_id=7, base_sequence=-2),
        INVALID,
    ),
    # compression
    "gzip that is not": (lambda: forged(records(), attributes=GZIP), CORRUPT),
    "snappy that is not": (lambda: forged(records(), attributes=SNAPPY), CORRUPT),
    "lz4 that is not": (lambda: forged(records(), attributes=LZ4), CORRUPT),
    "zstd that is not": (lambda: forged(records(), attributes=ZSTD), CORRUPT),
    "gzip labelled zstd": (lambda: forged_body(GZIP.compress(ONE), codec=ZSTD), CORRUPT),
    "gzip cut": (lambda: forged_body(GZIP.compress(ONE)[:-9], codec=GZIP), CORRUPT),
    "lz4 cut": (lambda: forged_body(LZ4.compress(ONE)[:-5], codec=LZ4), CORRUPT),
    "zstd cut": (lambda: forged_body(ZSTD.compress(ONE)[:-1], codec=ZSTD), CORRUPT),
    "snappy block cut": (lambda: forged_body(SNAPPY.compress(ONE)[:-1], codec=SNAPPY), CORRUPT),
    "snappy claims 4 GiB": (lambda: forged_body(b"\xff\xff\xff\xff\x0f\0", codec=SNAPPY), CORRUPT),
    "lz4 of magic 0": (lambda: forged_body(LZ4.compress(ONE, 0), codec=LZ4), CORRUPT),
    "empty zstd": (lambda: forged_body(b"", codec=ZSTD), CORRUPT),
    "compressed nothing": (lambda: forged_body(GZIP.compress(b""), codec=GZIP), INVALID),
    "compressed twice": (
        lambda: forged_body(GZIP.compress(GZIP.compress(ONE)), codec=GZIP),
        INVALID,
    ),
    "gzip bomb": (lambda: bomb(GZIP), TOO_LARGE),
    "lz4 bomb": (lambda: bomb(LZ4), TOO_LARGE),
    "zstd bomb": (lambda: bomb(ZSTD), TOO_LARGE),
}

FORGED_OLD = {
    "wrong crc": (lambda: flipped(old(b"abc"), 35), CORRUPT),
    "wrong crc of magic 0": (lambda: flipped(old(b"abc", magic=0), 27), CORRUPT),
    "no batch": (lambda: MemoryRecords.EMPTY, INVALID),
    "v1 shorter than its header": (
        lambda: MemoryRecords(struct.pack(">qiIbb", 0, 14, 0, 1, 0) + bytes(8)),
        CORRUPT,
    ),
    "mixed magics": (lambda: joined(old(b"a"), old(b"b", magic=0, offset=1)), INVALID),
    "v1 then v2": (lambda: joined(old(b"a"), records("b", offset=1)), INVALID),
    "two compressed sets": (
        lambda: joined(records(magic=1, codec=GZIP), records(magic=1, codec=GZIP)),
        INVALID,
    ),
    "compressed null": (lambda: old(None, codec=GZIP), INVALID),
    "compressed nothing": (lambda: old(GZIP.compress(b""), codec=GZIP), INVALID),
    "zstd in v1": (lambda: old(ZSTD.compress(old_record(b"a")), codec=ZSTD), INVALID),
    "zstd in v0": (lambda: old(ZSTD.compress(b"a"), codec=ZSTD, magic=0), INVALID),
    "codec 7 in v1": (lambda: old(b"a", codec=7), UNSUPPORTED),
    "gzip that is not": (lambda: old(b"abc", codec=GZIP), CORRUPT),
    "nested compression": (
        lambda: old(
            GZIP.compress(old_record(GZIP.compress(old_record(b"a")), codec=GZIP)), codec=GZIP
        ),
        INVALID,
    ),
    "inner magic differs": (
        lambda: old(GZIP.compress(old_record(b"a", magic=0)), codec=GZIP),
        INVALID,
    ),
    "inner record too small": (
        lambda: old(GZIP.compress(struct.pack(">qi", 0, 3) + bytes(3)), codec=GZIP),
        CORRUPT,
    ),
    "inner checksum": (
        lambda: old(GZIP.compress(old_record(b"a")[:-1] + b"b"), codec=GZIP),
        CORRUPT,
    ),
    "inner checksum over a size that does not fit": (
        lambda: old(GZIP.compress(old_record(b"a")[:-2] + b"\x09a"), codec=GZIP),
        CORRUPT,
    ),
    "inner checksum of a nested codec": (
        lambda: old(GZIP.compress(replaced(old_record(b"a"), 17, GZIP)), codec=GZIP),
        INVALID,
    ),
    "inner checksum of another magic": (
        lambda: old(GZIP.compress(replaced(old_record(b"a"), 16, 0)), codec=GZIP),
        INVALID,
    ),
    "wrapper offset below the inner": (
        lambda: old(
            GZIP.compress(old_record(b"a") + old_record(b"b", offset=5)), codec=GZIP, offset=2
        ),
        INVALID,
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_batch_gets_kafkas_error(name: str) -> None:
    build, expected = FORGED[name]
    source = build()
    before = bytes(source.buffer)

    with pytest.raises(KafkaError) as raised:
        append(source)

    assert Errors.for_exception(raised.value) is expected
    assert bytes(source.buffer) == before


@pytest.mark.parametrize("name", FORGED_OLD)
def test_forged_message_set_gets_kafkas_error(name: str) -> None:
    build, expected = FORGED_OLD[name]
    source = build()
    before = bytes(source.buffer)

    with pytest.raises(KafkaError) as raised:
        append_old(source)

    assert Errors.for_exception(raised.value) is expected
    assert bytes(source.buffer) == before


def test_there_are_at_least_sixty_forms() -> None:
    assert len(FORGED) + len(FORGED_OLD) >= 60


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("count too large", "offset"),
        ("control batch", "offset"),
        ("producer without sequence", "sequence"),
        ("offset deltas repeat", "offset"),
    ],
)
def test_refusals_are_counted(name: str, counted: str) -> None:
    recorder = CountingRecorder()

    with pytest.raises(InvalidRecordError):
        append(FORGED[name][0](), recorder)

    assert recorder.seen == [counted]


@pytest.mark.parametrize("target", [NONE, ZSTD])
@pytest.mark.parametrize("delta", [-(2**63), 2**62])
def test_extreme_timestamps_never_leave_kafkas_errors(delta: int, target: CompressionType) -> None:
    source = forged_body(record_bytes(timestamp_delta=delta), base_timestamp=2**62 + 5)

    try:
        validate(source, target=Compression(target))
    except KafkaError as error:
        assert isinstance(error, InvalidTimestampError)


@settings(derandomize=True, deadline=None, max_examples=400)
@given(records_lists, st.sampled_from(list(CompressionType)), st.data())
def test_any_damage_behind_a_right_checksum_gives_kafkas_errors_only(
    wanted: list[SimpleRecord], codec: CompressionType, data: st.DataObject
) -> None:
    damaged = bytearray(MemoryRecords.with_records(*wanted, compression=Compression(codec)).buffer)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(12, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    source = forged(MemoryRecords(damaged))
    target = data.draw(st.sampled_from([codec, NONE, LZ4]))

    try:
        validate_produce_records(9, source)
        validate(source, target=Compression(target))
    except KafkaError as error:
        assert isinstance(
            error,
            CorruptRecordError
            | InvalidRecordError
            | InvalidTimestampError
            | RecordTooLargeError
            | UnsupportedCompressionTypeError,
        )


def test_record_builder_of_the_forms_is_right() -> None:
    append(forged_body(ONE))
    append(forged_body(TWO, count=2))
    append(forged_body(ZSTD.compress(TWO), count=2, codec=ZSTD))
    append(records(record("a"), record("b")))
    append_old(old(GZIP.compress(old_record(b"a") + old_record(b"b", offset=1)), codec=GZIP))
