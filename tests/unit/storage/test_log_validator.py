import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import (
    CorruptRecordError,
    Errors,
    InvalidRecordError,
    InvalidTimestampError,
    UnsupportedCompressionTypeError,
)
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.legacy_record import write_legacy_record
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Header, SimpleRecord, TimestampType
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.log_validator import (
    MAX_RECORD_ERRORS,
    RecordError,
    RecordValidationError,
    validate_produce_records,
)
from tests.helpers.records import (
    TIMESTAMP,
    end_txn_marker,
    forged,
    joined,
    record,
    records,
    values,
)
from tests.unit.common.record.strategies import magics_and_codecs, records_lists
from tests.unit.storage.validation import NOW, CountingRecorder, source_codec, validate

CODECS = list(CompressionType)
LEGACY_CODECS = [codec for codec in CODECS if codec is not CompressionType.ZSTD]


def only_batch(source: MemoryRecords) -> DefaultRecordBatch:
    (batch,) = MemoryRecords(source.buffer).batches()
    assert isinstance(batch, DefaultRecordBatch)
    batch.ensure_valid()
    return batch


@pytest.mark.parametrize("codec", CODECS)
def test_v2_batch_gets_its_offsets_in_place(codec: CompressionType) -> None:
    source = records("a", "b", "c", codec=codec)
    crc = only_batch(source).crc

    result = validate(source, offset=1000)

    assert result.validated_records is source
    batch = only_batch(source)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (1000, 1002, 5)
    assert batch.crc == crc
    assert result.next_offset == 1003
    assert result.max_timestamp_ms == TIMESTAMP
    assert result.shallow_offset_of_max_timestamp == 1002
    assert result.message_size_maybe_changed is False
    assert result.log_append_time_ms == NOW
    assert result.record_conversion_stats.num_records_converted == 0
    assert (result.record_conversion_stats.temporary_memory_bytes > 0) == (codec != 0)


def test_read_only_buffer_is_copied_not_changed() -> None:
    data = bytes(records("a").buffer)
    source = MemoryRecords(data)

    result = validate(source, offset=7)

    assert only_batch(result.validated_records).base_offset == 7
    assert source.batches()[0].base_offset == 0


@pytest.mark.parametrize("codec", CODECS)
def test_log_append_time_is_set_in_place(codec: CompressionType) -> None:
    source = records("a", "b", codec=codec)

    result = validate(source, timestamp_type=TimestampType.LOG_APPEND_TIME)

    batch = only_batch(result.validated_records)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert batch.max_timestamp == result.max_timestamp_ms == NOW
    assert result.shallow_offset_of_max_timestamp == 1001
    assert {r.timestamp for r in batch.records()} == {NOW}


@pytest.mark.parametrize("codec", CODECS)
def test_wrong_max_timestamp_of_a_producer_is_put_right(codec: CompressionType) -> None:
    source = forged(
        records(record(timestamp=5), record(timestamp=9), record(timestamp=7), codec=codec),
        max_timestamp=123456,
    )

    result = validate(source)

    assert only_batch(result.validated_records).max_timestamp == 9
    assert result.max_timestamp_ms == 9


@pytest.mark.parametrize("codec", CODECS)
def test_records_without_timestamps_have_no_max(codec: CompressionType) -> None:
    result = validate(records("a", timestamp=-1, codec=codec), before_max_ms=10)

    assert (result.max_timestamp_ms, result.shallow_offset_of_max_timestamp) == (-1, -1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", LEGACY_CODECS)
def test_old_formats_become_one_v2_batch(magic: int, codec: CompressionType) -> None:
    source = records("a", "b", "c", magic=magic, codec=codec, key="k")

    result = validate(source, offset=50)

    batch = only_batch(result.validated_records)
    assert batch.magic == 2
    assert batch.compression_type is codec
    assert (batch.base_offset, batch.last_offset, batch.count) == (50, 52, 3)
    assert batch.leader_epoch == 5
    assert [(r.key, r.value) for r in batch.records()] == [
        (b"k", b"a"),
        (b"k", b"b"),
        (b"k", b"c"),
    ]
    assert batch.max_timestamp == (TIMESTAMP if magic else -1)
    assert result.shallow_offset_of_max_timestamp == (52 if magic else -1)
    assert result.message_size_maybe_changed
    assert result.record_conversion_stats.num_records_converted == 3
    assert result.record_conversion_stats.temporary_memory_bytes > 0
    assert result.next_offset == 53


@pytest.mark.parametrize("target", CODECS)
@pytest.mark.parametrize("source", CODECS)
def test_records_are_recompressed_to_the_topics_codec(
    source: CompressionType, target: CompressionType
) -> None:
    batch_in = records(
        SimpleRecord(3, b"k", b"v", (Header("h", b"x"),)),
        SimpleRecord(4, None, b"w" * 1000),
        codec=source,
        producer_id=9,
        producer_epoch=2,
        sequence=77,
        transactional=True,
    )

    result = validate(batch_in, offset=10, target=Compression(target))

    batch = only_batch(result.validated_records)
    assert batch.compression_type is target
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 2, 77)
    assert batch.is_transactional
    found = list(batch.records())
    assert [r.offset for r in found] == [10, 11]
    assert found[0].headers == (Header("h", b"x"),)
    assert [r.timestamp for r in found] == [3, 4]
    assert result.message_size_maybe_changed == (source != target)


@pytest.mark.parametrize("magic", [1, 2])
def test_recompression_under_log_append_time(magic: int) -> None:
    result = validate(
        records("a", "b", magic=magic),
        target=Compression(CompressionType.LZ4),
        timestamp_type=TimestampType.LOG_APPEND_TIME,
    )

    batch = only_batch(result.validated_records)
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert {r.timestamp for r in batch.records()} == {NOW} == {result.max_timestamp_ms}
    assert result.shallow_offset_of_max_timestamp == 1001


@pytest.mark.parametrize("level", [1, 19])
def test_target_level_is_used(level: int) -> None:
    content = bytes(range(256)) * 40

    result = validate(records(content), target=Compression(CompressionType.ZSTD, level))

    assert values(result.validated_records) == [content]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(records_lists, magics_and_codecs, st.sampled_from([None, *CODECS]), st.integers(0, 2**50))
def test_any_valid_records_come_out_as_they_went_in(
    wanted: list[SimpleRecord],
    magic_and_codec: tuple[int, CompressionType],
    target: CompressionType | None,
    offset: int,
) -> None:
    magic, codec = magic_and_codec
    source = MemoryRecords.with_records(*wanted, magic=magic, compression=Compression(codec))

    result = validate(source, offset=offset, target=None if target is None else Compression(target))

    batch = only_batch(result.validated_records)
    found = list(batch.records())
    assert [(r.key, r.value) for r in found] == [(r.key, r.value) for r in wanted]
    assert [r.offset for r in found] == list(range(offset, offset + len(wanted)))
    if magic == 2:
        assert [r.headers for r in found] == [r.headers for r in wanted]
    if magic > 0:
        assert [r.timestamp for r in found] == [r.timestamp for r in wanted]
        assert result.max_timestamp_ms == batch.max_timestamp == max(r.timestamp for r in wanted)
    assert batch.compression_type is (codec if target is None else target)


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_compacted_topic_refuses_records_without_key(magic: int, codec: CompressionType) -> None:
    recorder = CountingRecorder()
    source = records(
        record("a", key="k"),
        record("b"),
        record("c", key="k"),
        record("d"),
        magic=magic,
        codec=codec,
    )
    before = bytes(source.buffer)

    with pytest.raises(RecordValidationError) as raised:
        validate(source, compacted=True, recorder=recorder)

    error = raised.value
    assert Errors.for_exception(error) is Errors.INVALID_RECORD
    assert isinstance(error, InvalidRecordError)
    # Uncompressed old records are batches of their own: the first bad one ends it.
    one_batch = magic == 2 or codec is not CompressionType.NONE
    assert [e.batch_index for e in error.record_errors] == ([1, 3] if one_batch else [0])
    assert "key" in error.record_errors[0].message
    assert recorder.seen == ["no key"] * len(error.record_errors)
    assert bytes(source.buffer) == before


def test_compacted_topic_accepts_records_with_keys_and_markers() -> None:
    validate(records("a", key="k"), compacted=True)
    validate(records("a", key=""), compacted=True)
    validate(end_txn_marker(), compacted=True, origin=AppendOrigin.COORDINATOR)


@pytest.mark.parametrize("codec", LEGACY_CODECS)
@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize(
    ("timestamp", "accepted"),
    [(NOW - 100, True), (NOW - 101, False), (NOW + 50, True), (NOW + 51, False), (-1, True)],
)
def test_timestamps_have_bounds_both_ways(
    magic: int, codec: CompressionType, timestamp: int, accepted: bool
) -> None:
    source = records(record(timestamp=NOW), record(timestamp=timestamp), magic=magic, codec=codec)

    if accepted:
        validate(source, before_max_ms=100, after_max_ms=50)
        return
    with pytest.raises(RecordValidationError) as raised:
        validate(source, before_max_ms=100, after_max_ms=50)

    assert Errors.for_exception(raised.value) is Errors.INVALID_TIMESTAMP
    assert isinstance(raised.value, InvalidTimestampError)
    one_batch = magic == 2 or codec is not CompressionType.NONE
    (error,) = raised.value.record_errors
    assert error.batch_index == (1 if one_batch else 0)
    assert str(timestamp) in error.message


def test_bounds_do_not_count_under_log_append_time() -> None:
    validate(
        records(timestamp=5),
        before_max_ms=1,
        after_max_ms=1,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
    )


def test_one_bad_timestamp_decides_the_code_but_all_errors_are_told() -> None:
    source = records(record("a"), record("b", key="k", timestamp=5))

    with pytest.raises(InvalidTimestampError) as raised:
        validate(source, compacted=True, before_max_ms=10_000)

    assert isinstance(raised.value, RecordValidationError)
    assert [error.batch_index for error in raised.value.record_errors] == [0, 1]


def test_record_errors_are_limited() -> None:
    source = records(*["v"] * (MAX_RECORD_ERRORS + 5))

    with pytest.raises(RecordValidationError, match=str(MAX_RECORD_ERRORS + 5)) as raised:
        validate(source, compacted=True)

    assert len(raised.value.record_errors) == MAX_RECORD_ERRORS
    assert isinstance(raised.value.record_errors[0], RecordError)


def test_producer_must_not_claim_log_append_time_on_such_a_topic() -> None:
    source = records("a", timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=5)

    with pytest.raises(InvalidTimestampError):
        validate(source, timestamp_type=TimestampType.LOG_APPEND_TIME)


def test_claimed_log_append_time_becomes_create_time_on_a_create_time_topic() -> None:
    source = records("a", timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=5)

    result = validate(source)

    assert only_batch(result.validated_records).timestamp_type is TimestampType.CREATE_TIME
    assert result.max_timestamp_ms == 5


def test_control_batches_are_for_brokers_only() -> None:
    with pytest.raises(InvalidRecordError, match="control"):
        validate(end_txn_marker())

    result = validate(end_txn_marker(), origin=AppendOrigin.COORDINATOR, offset=3)
    assert only_batch(result.validated_records).base_offset == 3


def test_control_batch_is_never_recompressed() -> None:
    result = validate(
        end_txn_marker(),
        origin=AppendOrigin.COORDINATOR,
        target=Compression(CompressionType.GZIP),
    )

    batch = only_batch(result.validated_records)
    assert batch.is_control_batch
    assert batch.compression_type is CompressionType.NONE


def test_inner_checksum_of_a_compressed_v1_set_is_checked() -> None:
    inner = bytearray()
    write_legacy_record(inner, offset=0, magic=1, timestamp=5, key=None, value=b"abc")
    inner[-1] ^= 1
    outer = bytearray()
    write_legacy_record(
        outer,
        offset=0,
        magic=1,
        timestamp=5,
        key=None,
        value=CompressionType.GZIP.compress(inner),
        codec=CompressionType.GZIP,
    )
    recorder = CountingRecorder()

    with pytest.raises(CorruptRecordError):
        validate(MemoryRecords(outer), recorder=recorder)
    assert recorder.seen == ["checksum"]


def test_inner_offsets_of_old_clients_are_rewritten_not_refused() -> None:
    inner = bytearray()
    for value in (b"a", b"b", b"c"):
        write_legacy_record(inner, offset=0, magic=1, timestamp=5, key=None, value=value)
    outer = bytearray()
    write_legacy_record(
        outer,
        offset=0,
        magic=1,
        timestamp=5,
        key=None,
        value=CompressionType.LZ4.compress(inner),
        codec=CompressionType.LZ4,
    )

    result = validate(MemoryRecords(outer), offset=20)

    assert [r.offset for r in result.validated_records.records()] == [20, 21, 22]


@pytest.mark.parametrize("version", range(3, 12))
def test_produce_v3_and_later_carry_one_v2_batch(version: int) -> None:
    validate_produce_records(version, records("a"))
    for bad in (
        MemoryRecords.EMPTY,
        records("a", magic=1),
        joined(records("a"), records("b")),
    ):
        with pytest.raises(InvalidRecordError):
            validate_produce_records(version, bad)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_older_produce_carries_anything(version: int) -> None:
    for good in (MemoryRecords.EMPTY, records(magic=0), joined(records("a"), records("b"))):
        validate_produce_records(version, good)


def test_zstd_needs_produce_v7() -> None:
    source = records("a", codec=CompressionType.ZSTD)

    validate_produce_records(7, source)
    with pytest.raises(UnsupportedCompressionTypeError):
        validate_produce_records(6, source)


def test_source_codec_is_that_of_a_compressed_batch() -> None:
    assert source_codec(records("a", codec=CompressionType.LZ4)) is CompressionType.LZ4
