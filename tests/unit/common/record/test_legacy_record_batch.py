import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaError,
    UnsupportedCompressionTypeError,
)
from kafkapy.common.record.legacy_record import update_crc, write_legacy_record
from kafkapy.common.record.legacy_record_batch import LegacyRecordBatch
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord, TimestampType
from tests.helpers.records import records
from tests.unit.common.record.strategies import magics_and_codecs, records_lists

LEGACY_CODECS = [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4]


def batch_of(source: MemoryRecords) -> LegacyRecordBatch:
    batch = source.batches()[0]
    assert isinstance(batch, LegacyRecordBatch)
    return batch


def entry(
    value: bytes | None = b"v",
    *,
    offset: int = 0,
    magic: int = 1,
    codec: CompressionType = CompressionType.NONE,
    key: bytes | None = None,
) -> bytes:
    out = bytearray()
    write_legacy_record(
        out, offset=offset, magic=magic, timestamp=5, key=key, value=value, codec=codec
    )
    return bytes(out)


def wrapper(content: bytes, *, offset: int = 0, magic: int = 1) -> LegacyRecordBatch:
    value = CompressionType.GZIP.compress(content)
    data = entry(value, offset=offset, magic=magic, codec=CompressionType.GZIP)
    return batch_of(MemoryRecords(data))


@settings(derandomize=True, deadline=None, max_examples=200)
@given(records_lists, magics_and_codecs, st.integers(0, 2**40))
def test_any_records_survive_every_magic_and_codec(
    wanted: list[SimpleRecord], magic_and_codec: tuple[int, CompressionType], offset: int
) -> None:
    magic, codec = magic_and_codec
    source = MemoryRecords.with_records(
        *wanted, magic=magic, compression=Compression(codec), initial_offset=offset
    )

    found = list(source.records())

    for batch in source.batches():
        batch.ensure_valid()
        assert batch.magic == magic
    assert [(r.key, r.value) for r in found] == [(r.key, r.value) for r in wanted]
    assert [r.offset for r in found] == list(range(offset, offset + len(wanted)))
    if magic > 0:
        assert [r.timestamp for r in found] == [r.timestamp for r in wanted]
    else:
        assert {r.timestamp for r in found} == {-1}


@pytest.mark.parametrize("magic", [0, 1])
def test_uncompressed_records_are_batches_of_their_own(magic: int) -> None:
    batches = list(records("a", "b", "c", magic=magic, offset=5).batches())

    assert [(b.base_offset, b.last_offset, b.count) for b in batches] == [
        (5, 5, None),
        (6, 6, None),
        (7, 7, None),
    ]
    assert batches[0].producer_id == batches[0].base_sequence == batches[0].leader_epoch == -1
    assert not batches[0].is_transactional
    assert batches[0].last_sequence == -1


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_wrapper_has_the_last_offset_and_inner_offsets_as_the_magic_says(
    magic: int, codec: CompressionType
) -> None:
    source = records("a", "b", "c", magic=magic, offset=50, codec=codec)

    batch = batch_of(source)
    inner = codec.decompress(source.buffer[12 + (14 if magic == 0 else 22) :], magic)

    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (50, 52, 53)
    assert struct.unpack_from(">q", inner)[0] == (50 if magic == 0 else 0)


def test_wrapper_offset_0_of_librdkafka_takes_inner_offsets_as_they_are() -> None:
    content = entry(b"a", offset=0) + entry(b"b", offset=1) + entry(b"c", offset=2)

    assert [r.offset for r in wrapper(content, offset=0).records()] == [0, 1, 2]
    assert [r.offset for r in wrapper(content, offset=12).records()] == [10, 11, 12]
    with pytest.raises(InvalidRecordError, match="wrapper offset"):
        list(wrapper(content, offset=1).records())


def test_wrapper_with_log_append_time_overrides_inner_timestamps() -> None:
    source = records(
        "a",
        "b",
        magic=1,
        codec=CompressionType.GZIP,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time=77,
    )

    assert [r.timestamp for r in source.records()] == [77, 77]
    assert batch_of(source).max_timestamp == 77


def test_incomplete_inner_record_at_the_end_is_dropped() -> None:
    content = entry(b"a") + entry(b"b", offset=1)

    assert [r.value for r in wrapper(content[:-1]).records()] == [b"a"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", InvalidRecordError),
        (b"\0" * 5, InvalidRecordError),
        (struct.pack(">qi", 0, 13) + bytes(13), CorruptRecordError),
        (struct.pack(">qi", 0, -5) + bytes(13), CorruptRecordError),
        (entry(b"a", codec=CompressionType.GZIP), InvalidRecordError),
        (entry(b"value")[:-5].replace(b"\0\0\0\x1b", b"\0\0\0\x16"), InvalidRecordError),
        (struct.pack(">qiIbb", 0, 14, 0, 1, 0) + bytes(8), InvalidRecordError),
    ],
)
def test_malformed_message_set_is_refused(content: bytes, error: type[KafkaError]) -> None:
    with pytest.raises(error):
        list(wrapper(content).records())


def test_wrapper_without_value_or_with_a_wrong_codec_is_refused() -> None:
    null = MemoryRecords(entry(None, codec=CompressionType.GZIP))
    zstd = MemoryRecords(entry(b"x", codec=CompressionType.ZSTD))
    unknown = bytearray(entry(b"x"))
    unknown[17] = 6

    with pytest.raises(InvalidRecordError, match="null"):
        list(null.records())
    with pytest.raises(InvalidRecordError, match="zstd"):
        list(zstd.records())
    with pytest.raises(UnsupportedCompressionTypeError):
        list(MemoryRecords(unknown).records())


def test_inner_checksums_are_checked_when_asked() -> None:
    broken = bytearray(entry(b"abc"))
    broken[-1] ^= 1

    wrapper(entry(b"abc")).ensure_inner_valid()
    with pytest.raises(CorruptRecordError):
        wrapper(bytes(broken)).ensure_inner_valid()


@pytest.mark.parametrize("magic", [0, 1])
def test_every_changed_byte_under_the_checksum_is_noticed(magic: int) -> None:
    data = entry(b"value", key=b"key", magic=magic)

    for position in [12, 13, 14, 15, *range(17, len(data))]:
        damaged = bytearray(data)
        damaged[position] ^= 1
        batch = batch_of(MemoryRecords(damaged))
        assert not batch.is_valid
        with pytest.raises(CorruptRecordError, match="crc"):
            batch.ensure_valid()


def test_setters_write_through_and_renew_the_checksum() -> None:
    source = records("a", magic=1, timestamp=5)
    batch = batch_of(source)
    crc = batch.crc

    batch.set_last_offset(9)
    batch.set_max_timestamp(TimestampType.CREATE_TIME, 5)
    unchanged = batch.crc
    batch.set_max_timestamp(TimestampType.LOG_APPEND_TIME, 8)

    reread = batch_of(MemoryRecords(source.buffer))
    assert unchanged == crc != reread.crc
    assert reread.is_valid
    assert (reread.last_offset, reread.max_timestamp) == (9, 8)
    assert reread.timestamp_type is TimestampType.LOG_APPEND_TIME
    batch.set_max_timestamp(TimestampType.CREATE_TIME, 5)
    assert batch.crc == crc


def test_magic_0_has_no_timestamp_and_neither_has_a_leader_epoch() -> None:
    batch = batch_of(records("a", magic=0))

    assert batch.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE
    with pytest.raises(ValueError, match="timestamp"):
        batch.set_max_timestamp(TimestampType.CREATE_TIME, 1)
    with pytest.raises(ValueError, match="epoch"):
        batch.set_leader_epoch(1)


def test_v1_record_smaller_than_its_header_is_corrupt() -> None:
    data = bytearray(struct.pack(">qiIbb", 0, 14, 0, 1, 0) + bytes(8))
    update_crc(memoryview(data))

    with pytest.raises(CorruptRecordError, match="smaller"):
        list(MemoryRecords(data).batches())


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.binary(min_size=0, max_size=60), st.sampled_from([0, 1]), st.integers(0, 255))
def test_any_bytes_give_kafkas_errors_only(content: bytes, magic: int, attributes: int) -> None:
    data = bytearray(struct.pack(">qiIbB", 3, 6 + len(content), 0, magic, attributes) + content)

    try:
        list(MemoryRecords(data).records())
    except KafkaError as error:
        assert isinstance(
            error, CorruptRecordError | InvalidRecordError | UnsupportedCompressionTypeError
        )
