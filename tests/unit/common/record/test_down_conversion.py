import pytest

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import UnsupportedCompressionTypeError
from kafkapy.common.record.down_conversion import convert_batches, down_convert
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.memory_records_builder import MemoryRecordsBuilder
from kafkapy.common.record.record import Header, SimpleRecord, TimestampType
from tests.helpers.records import end_txn_marker, joined, record, records, values

CODECS = [codec for codec in CompressionType if codec is not CompressionType.ZSTD]


def offsets(source: MemoryRecords) -> list[int]:
    return [r.offset for r in source.records()]


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("from_magic", "to_magic"), [(2, 1), (2, 0), (1, 0)])
def test_records_keep_offsets_keys_and_values(
    from_magic: int, to_magic: int, codec: CompressionType
) -> None:
    source = joined(
        records("a", "b", magic=from_magic, codec=codec, offset=5, key="k"),
        records("c", magic=from_magic, codec=codec, offset=9, key="k"),
    )

    converted = convert_batches(source.batches(), to_magic)

    assert converted.records.has_matching_magic(to_magic)
    for batch in converted.records.batches():
        batch.ensure_valid()
        assert batch.compression_type is codec
    assert offsets(converted.records) == [5, 6, 9]
    assert values(converted.records) == [b"a", b"b", b"c"]
    assert {r.key for r in converted.records.records()} == {b"k"}
    assert converted.num_records_converted == 3
    assert converted.temporary_memory_bytes > 0


def test_timestamps_survive_to_magic_1_only() -> None:
    source = records(record("a", timestamp=5), record("b", timestamp=3))

    assert [r.timestamp for r in down_convert(source, 1).records()] == [5, 3]
    assert [r.timestamp for r in down_convert(source, 0).records()] == [-1, -1]


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_stays_log_append_time(codec: CompressionType) -> None:
    source = records(
        "a", "b", codec=codec, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=77
    )

    converted = down_convert(source, 1)

    assert {b.timestamp_type for b in converted.batches()} == {TimestampType.LOG_APPEND_TIME}
    assert [r.timestamp for r in converted.records()] == [77, 77]


def test_batches_that_are_old_enough_are_copied() -> None:
    old, new = records("a", magic=0), records("b", offset=1)

    converted = convert_batches(joined(old, new).batches(), 1)

    assert [b.magic for b in converted.records.batches()] == [0, 1]
    assert converted.num_records_converted == 1
    assert down_convert(new, 2) == new


def test_control_batches_and_headers_are_dropped_and_transactional_data_kept() -> None:
    data = records(
        SimpleRecord(5, b"k", b"v", (Header("h", b"x"),)),
        producer_id=7,
        producer_epoch=0,
        sequence=0,
        transactional=True,
    )

    converted = down_convert(joined(data, end_txn_marker(offset=1)), 1)

    assert offsets(converted) == [0]
    (found,) = converted.records()
    assert (found.value, found.headers) == (b"v", ())


def test_only_control_batches_convert_to_nothing() -> None:
    assert down_convert(end_txn_marker(), 1) == MemoryRecords.EMPTY


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_cannot_be_converted(magic: int) -> None:
    with pytest.raises(UnsupportedCompressionTypeError):
        down_convert(records(codec=CompressionType.ZSTD), magic)


@pytest.mark.parametrize("magic", [0, 1])
def test_records_before_a_zstd_batch_are_converted(magic: int) -> None:
    source = joined(
        records("a", "b"),
        records("c", offset=2, codec=CompressionType.GZIP),
        records("d", offset=3, codec=CompressionType.ZSTD),
        records("e", offset=4),
    )

    assert offsets(down_convert(source, magic)) == [0, 1, 2]


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_behind_batches_that_are_dropped_cannot_be_converted(magic: int) -> None:
    zstd = records("d", offset=3, codec=CompressionType.ZSTD)

    with pytest.raises(UnsupportedCompressionTypeError):
        down_convert(joined(end_txn_marker(offset=2), zstd), magic)
    with pytest.raises(UnsupportedCompressionTypeError):
        down_convert(joined(records("a", offset=2), zstd), magic, first_offset=3)


def test_records_before_the_first_offset_are_left_out_unless_compressed() -> None:
    plain = records("a", "b", "c", offset=10)
    packed = records("a", "b", "c", offset=10, codec=CompressionType.GZIP)

    assert offsets(down_convert(plain, 1, first_offset=11)) == [11, 12]
    assert offsets(down_convert(packed, 1, first_offset=11)) == [10, 11, 12]
    assert down_convert(plain, 1, first_offset=13) == MemoryRecords.EMPTY


@pytest.mark.parametrize("codec", CODECS)
def test_gaps_of_compaction_survive(codec: CompressionType) -> None:
    builder = MemoryRecordsBuilder(base_offset=10)
    builder.append_with_offset(13, record("a"))
    builder.append_with_offset(17, record("b"))

    assert offsets(down_convert(MemoryRecords(builder.build()), 1)) == [13, 17]
