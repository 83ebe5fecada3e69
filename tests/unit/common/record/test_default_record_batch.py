import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import CorruptRecordError, InvalidRecordError, KafkaError
from kafkapy.common.record.default_record import walk_records
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Header, SimpleRecord, TimestampType
from kafkapy.common.record.record_batch import (
    RECORD_BATCH_OVERHEAD,
    decrement_sequence,
    increment_sequence,
)
from tests.helpers.records import TIMESTAMP, forged, forged_body, record, record_bytes, records
from tests.unit.common.record.strategies import records_lists


def batch_of(source: MemoryRecords) -> DefaultRecordBatch:
    batch = source.batches()[0]
    assert isinstance(batch, DefaultRecordBatch)
    return batch


def outcome(source: MemoryRecords) -> tuple[str, str]:
    """How reading and walking end: nothing, or the class of the error."""
    results = []
    for read in (
        lambda: list(batch_of(source).records()),
        lambda: walk_records(batch_of(source).record_input(), batch_of(source).count or 0),
    ):
        try:
            read()
            results.append("")
        except KafkaError as error:
            results.append(type(error).__name__)
    return results[0], results[1]


def test_header_fields_are_decoded() -> None:
    source = records(
        "a",
        "b",
        offset=50,
        producer_id=9,
        producer_epoch=3,
        sequence=17,
        leader_epoch=5,
        transactional=True,
        codec=CompressionType.LZ4,
    )

    batch = batch_of(source)

    assert (batch.base_offset, batch.last_offset, batch.next_offset) == (50, 51, 52)
    assert (batch.producer_id, batch.producer_epoch) == (9, 3)
    assert (batch.base_sequence, batch.last_sequence) == (17, 18)
    assert batch.leader_epoch == 5
    assert batch.count == 2
    assert batch.magic == 2
    assert batch.base_timestamp == batch.max_timestamp == TIMESTAMP
    assert batch.compression_type is CompressionType.LZ4
    assert batch.timestamp_type is TimestampType.CREATE_TIME
    assert batch.is_transactional
    assert not batch.is_control_batch
    assert batch.has_producer_id
    assert batch.delete_horizon_ms is None
    assert batch.size_in_bytes == source.size_in_bytes
    assert batch.is_valid


@settings(derandomize=True, deadline=None, max_examples=150)
@given(records_lists, st.sampled_from(list(CompressionType)), st.integers(0, 2**40))
def test_any_records_survive_every_codec(
    wanted: list[SimpleRecord], codec: CompressionType, offset: int
) -> None:
    source = MemoryRecords.with_records(
        *wanted, compression=Compression(codec), initial_offset=offset
    )

    batch = batch_of(source)
    found = list(batch.records())

    batch.ensure_valid()
    assert [SimpleRecord(r.timestamp, r.key, r.value, r.headers) for r in found] == wanted
    assert [r.offset for r in found] == list(range(offset, offset + len(wanted)))
    assert batch.max_timestamp == max(r.timestamp for r in wanted)
    uncompressed = MemoryRecords.with_records(*wanted).size_in_bytes - RECORD_BATCH_OVERHEAD
    assert sum(r.size_in_bytes for r in found) == uncompressed


@settings(derandomize=True, deadline=None, max_examples=100)
@given(records_lists, st.sampled_from(list(CompressionType)))
def test_walk_sees_what_reading_sees(wanted: list[SimpleRecord], codec: CompressionType) -> None:
    batch = batch_of(MemoryRecords.with_records(*wanted, compression=Compression(codec)))

    walk = walk_records(batch.record_input(), len(wanted))

    deltas = [r.timestamp - wanted[0].timestamp for r in wanted]
    assert walk == (min(deltas), max(deltas), all(r.key is not None for r in wanted), True)


@pytest.mark.parametrize("count", [64, 8192 + 10])
def test_walk_follows_offset_deltas_of_every_length(count: int) -> None:
    batch = batch_of(records(*["v"] * count))

    _, _, _, offsets_are_contiguous = walk_records(batch.record_input(), count)

    assert offsets_are_contiguous


@pytest.mark.parametrize("codec", list(CompressionType))
@pytest.mark.parametrize("size", [63, 64, 8191, 8192, 300_000, 3_000_000])
def test_records_larger_than_a_decompressed_piece_are_read(
    codec: CompressionType, size: int
) -> None:
    source = records(b"x" * size, b"y" * size, b"z", codec=codec, key=b"k" * 100)

    found = list(source.records())
    walk = walk_records(batch_of(source).record_input(), 3)

    assert [len(r.value or b"") for r in found] == [size, size, 1]
    assert walk == (0, 0, True, True)


@pytest.mark.parametrize("delta", [0, 1, 3, 200, -1, 2**20])
def test_walk_notices_offsets_that_are_not_contiguous(delta: int) -> None:
    body = record_bytes(offset_delta=0) + record_bytes(offset_delta=1)
    body += record_bytes(offset_delta=delta)

    _, _, _, offsets_are_contiguous = walk_records(
        batch_of(forged_body(body, count=3)).record_input(), 3
    )

    assert not offsets_are_contiguous


def test_log_append_time_overrides_the_records_timestamps() -> None:
    source = records("a", timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=123)

    (found,) = source.records()

    assert found.timestamp == 123
    assert batch_of(source).timestamp_type is TimestampType.LOG_APPEND_TIME


def test_sequences_wrap_after_the_largest() -> None:
    source = records("a", "b", "c", producer_id=1, producer_epoch=0, sequence=2**31 - 2)

    assert [r.sequence for r in source.records()] == [2**31 - 2, 2**31 - 1, 0]
    assert batch_of(source).last_sequence == 0
    assert increment_sequence(2**31 - 1, 1) == 0
    assert decrement_sequence(0, 1) == 2**31 - 1
    assert decrement_sequence(5, 3) == 2


def test_setting_offset_and_epoch_leaves_the_checksum_alone() -> None:
    source = records("a", "b")
    batch = batch_of(source)
    crc = batch.crc

    batch.set_last_offset(101)
    batch.set_leader_epoch(8)

    reread = batch_of(MemoryRecords(source.buffer))
    assert (reread.base_offset, reread.last_offset, reread.leader_epoch) == (100, 101, 8)
    assert reread.crc == batch.crc == crc
    assert reread.is_valid


def test_setting_a_timestamp_renews_the_checksum_only_if_it_changes() -> None:
    source = records("a", timestamp=5)
    batch = batch_of(source)
    crc = batch.crc

    batch.set_max_timestamp(TimestampType.CREATE_TIME, 5)
    unchanged = batch.crc
    batch.set_max_timestamp(TimestampType.LOG_APPEND_TIME, 9)

    assert unchanged == crc != batch.crc
    reread = batch_of(MemoryRecords(source.buffer))
    assert reread.is_valid
    assert reread.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert next(reread.records()).timestamp == 9
    batch.set_max_timestamp(TimestampType.CREATE_TIME, 5)
    assert batch.crc == crc


def test_setting_a_timestamp_drops_attributes_without_a_meaning() -> None:
    batch = batch_of(forged(records("a", timestamp=5), attributes=0x7AF2))

    batch.set_max_timestamp(TimestampType.CREATE_TIME, 5)
    untouched = batch.attributes
    batch.set_max_timestamp(TimestampType.LOG_APPEND_TIME, 9)

    reread = batch_of(MemoryRecords(batch.buffer))
    assert untouched == 0x7AF2
    assert reread.attributes == batch.attributes == 0x7A
    assert reread.is_valid
    batch.set_max_timestamp(TimestampType.CREATE_TIME, 5)
    assert batch.attributes == 0x72


def test_wrong_checksum_is_corrupt() -> None:
    batch = batch_of(forged(records("a"), crc=1))

    assert not batch.is_valid
    with pytest.raises(CorruptRecordError, match="crc"):
        batch.ensure_valid()


@pytest.mark.parametrize("codec", list(CompressionType))
def test_every_changed_byte_under_the_checksum_is_noticed(codec: CompressionType) -> None:
    source = records("a", "b", codec=codec)

    for position in range(17, source.size_in_bytes):
        data = bytearray(source.buffer)
        data[position] ^= 0x40
        assert not batch_of(MemoryRecords(data)).is_valid


def test_header_key_that_is_not_text_is_replaced_and_null_value_kept() -> None:
    out = record_bytes(b"v")[:-1] + b"\x02\x02\xff\x01"
    out = bytes((out[0] + 6,)) + out[1:]

    (found,) = forged_body(out).records()

    assert found.headers == (Header("�", None),)


BODY = record_bytes(b"value", key=b"key")
WITH_HEADER = bytes((BODY[0] + 10,)) + BODY[1:-1] + b"\x02\x02h\x04ab"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(BODY[:-1], id="cut in the last field"),
        pytest.param(BODY[:3], id="cut in the first fields"),
        pytest.param(BODY + b"\x00", id="a byte more"),
        pytest.param(BODY + BODY, id="a record more"),
        pytest.param(b"\x80", id="half a length"),
        pytest.param(b"\x80\x80\x80\x80\x80\x01" + BODY, id="length of six bytes"),
        pytest.param(b"\x01" + BODY[1:], id="negative length"),
        pytest.param(bytes((BODY[0] + 2,)) + BODY[1:], id="length too large"),
        pytest.param(bytes((BODY[0] - 2,)) + BODY[1:], id="length too small"),
        pytest.param(b"\xfe\xff\xff\xff\x0f" + BODY[1:], id="largest length"),
        pytest.param(BODY[:2] + b"\xff" * 11 + BODY[3:], id="timestamp of eleven bytes"),
        pytest.param(BODY[:3] + b"\xff" * 6 + BODY[4:], id="offset of six bytes"),
        pytest.param(BODY[:4] + b"\x7e" + BODY[5:], id="key past the end"),
        pytest.param(BODY[:4] + b"\xfe\xff\xff\xff\x0f" + BODY[5:], id="largest key"),
        pytest.param(BODY[:8] + b"\x7e" + BODY[9:], id="value past the end"),
        pytest.param(BODY[:8] + b"\xff\x7f" + BODY[10:], id="value null but there"),
        pytest.param(BODY[:-1] + b"\x01", id="negative header count"),
        pytest.param(BODY[:-1] + b"\x02", id="header missing"),
        pytest.param(BODY[:-1] + b"\x7e", id="more headers than bytes"),
        pytest.param(WITH_HEADER.replace(b"\x02h", b"\x01h"), id="null header key"),
        pytest.param(WITH_HEADER.replace(b"\x04ab", b"\x06ab"), id="header value past the end"),
        pytest.param(WITH_HEADER.replace(b"\x04ab", b"\x02ab"), id="header value too short"),
    ],
)
def test_malformed_records_are_invalid_for_reader_and_walk_alike(body: bytes) -> None:
    for codec in CompressionType:
        source = forged_body(codec.compress(body), codec=codec)

        assert outcome(source) == ("InvalidRecordError", "InvalidRecordError")


def test_record_with_header_is_valid() -> None:
    assert outcome(forged_body(WITH_HEADER)) == ("", "")


@settings(derandomize=True, deadline=None, max_examples=400)
@given(st.binary(max_size=60), st.integers(1, 4))
def test_reader_and_walk_agree_on_any_bytes(body: bytes, count: int) -> None:
    read, walked = outcome(forged_body(body, count=count))

    assert read == walked
    assert read in ("", "InvalidRecordError")


@settings(derandomize=True, deadline=None, max_examples=400)
@given(records_lists, st.data())
def test_reader_and_walk_agree_on_damaged_records(
    wanted: list[SimpleRecord], data: st.DataObject
) -> None:
    body = bytearray(MemoryRecords.with_records(*wanted).buffer[RECORD_BATCH_OVERHEAD:])
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    read, walked = outcome(forged_body(bytes(body), count=len(wanted)))

    assert read == walked
    assert read in ("", "InvalidRecordError")


def test_every_truncation_of_a_records_section_is_invalid() -> None:
    body = bytes(records("a", "bb", record("c", key="k")).buffer[RECORD_BATCH_OVERHEAD:])

    for size in range(len(body)):
        assert outcome(forged_body(body[:size], count=3)) == ("InvalidRecordError",) * 2


def test_negative_count_is_invalid() -> None:
    with pytest.raises(InvalidRecordError, match="-1"):
        list(batch_of(forged(records(), count=-1)).records())
