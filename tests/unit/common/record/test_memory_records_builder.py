import pytest

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import InvalidRecordError, InvalidTimestampError
from kafkapy.common.record.control_record import ControlRecordType, EndTransactionMarker
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.memory_records_builder import MemoryRecordsBuilder
from kafkapy.common.record.record import NO_TIMESTAMP, Record, SimpleRecord, TimestampType
from tests.helpers.records import end_txn_marker, record

GZIP = Compression(CompressionType.GZIP)
NONE = Compression(CompressionType.NONE)


def control(key: bytes | None, value: bytes | None) -> Record:
    return Record(2, 0, 0, key, value, (), -1, 0)


@pytest.mark.parametrize(
    ("magic", "compression", "offset"),
    [(2, NONE, 12), (2, GZIP, 12), (1, GZIP, 12), (1, NONE, 11)],
)
def test_info_names_the_last_offset_of_the_batch_with_the_greatest_timestamp(
    magic: int, compression: Compression, offset: int
) -> None:
    builder = MemoryRecordsBuilder(magic=magic, compression=compression, base_offset=10)
    for timestamp in (5, 9, 7):
        builder.append(record(timestamp=timestamp))

    info = builder.info()

    assert info == (9, offset)


@pytest.mark.parametrize(
    ("magic", "compression", "offset"), [(2, NONE, 11), (1, GZIP, 11), (1, NONE, 10)]
)
def test_info_under_log_append_time(magic: int, compression: Compression, offset: int) -> None:
    builder = MemoryRecordsBuilder(
        magic=magic,
        compression=compression,
        base_offset=10,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time=99,
    )
    builder.append(record())
    builder.append(record())

    assert builder.info() == (99, offset)
    batches = list(MemoryRecords(builder.build()).batches())
    assert {batch.max_timestamp for batch in batches} == {99}


def test_info_without_any_timestamp() -> None:
    builder = MemoryRecordsBuilder(magic=0)
    builder.append(record(timestamp=5))

    assert builder.info() == (NO_TIMESTAMP, -1)


def test_offsets_may_have_gaps_but_never_fall() -> None:
    builder = MemoryRecordsBuilder(base_offset=10)
    builder.append_with_offset(12, record("a"))
    builder.append_with_offset(20, record("b"))

    (batch,) = MemoryRecords(builder.build()).batches()

    assert (batch.base_offset, batch.last_offset, batch.count) == (10, 20, 2)
    assert [r.offset for r in batch.records()] == [12, 20]
    with pytest.raises(ValueError, match="follows"):
        builder.append_with_offset(20, record("c"))


def test_negative_timestamp_is_refused() -> None:
    with pytest.raises(InvalidTimestampError):
        MemoryRecordsBuilder().append(record(timestamp=-2))


def test_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    builder = MemoryRecordsBuilder(delete_horizon_ms=1000)
    builder.append(record(timestamp=400))

    (batch,) = MemoryRecords(builder.build()).batches()

    assert isinstance(batch, DefaultRecordBatch)
    assert batch.delete_horizon_ms == batch.base_timestamp == 1000
    assert next(batch.records()).timestamp == 400


def test_nothing_appended_builds_nothing() -> None:
    assert MemoryRecordsBuilder().build() == b""


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_have_neither_transactions_nor_zstd(magic: int) -> None:
    with pytest.raises(ValueError, match="transactions"):
        MemoryRecordsBuilder(magic=magic, is_transactional=True)
    with pytest.raises(ValueError, match="zstd"):
        MemoryRecordsBuilder(magic=magic, compression=Compression(CompressionType.ZSTD))


@pytest.mark.parametrize("control_type", [ControlRecordType.COMMIT, ControlRecordType.ABORT])
def test_end_transaction_marker_survives_the_round_trip(control_type: ControlRecordType) -> None:
    source = end_txn_marker(control_type, offset=7, coordinator_epoch=13, leader_epoch=2)

    (batch,) = source.batches()
    (found,) = batch.records()

    assert batch.is_control_batch
    assert batch.is_transactional
    assert (batch.base_offset, batch.leader_epoch, batch.base_sequence) == (7, 2, -1)
    assert EndTransactionMarker.deserialize(found) == EndTransactionMarker(control_type, 13)
    assert found.key == bytes((0, 0, 0, control_type))
    assert found.value == bytes.fromhex("00000000000d")


def test_other_control_records_are_known_by_their_type() -> None:
    builder = MemoryRecordsBuilder(is_control_batch=True)
    builder.append_control_record(5, ControlRecordType.LEADER_CHANGE, b"x")

    (found,) = MemoryRecords(builder.build()).records()

    assert ControlRecordType.parse(found.key) is ControlRecordType.LEADER_CHANGE
    assert ControlRecordType.parse(b"\0\0\0\x63") is ControlRecordType.UNKNOWN
    assert ControlRecordType.parse(b"\0\x01\xff\xff") is ControlRecordType.UNKNOWN
    with pytest.raises(ValueError, match="unknown"):
        ControlRecordType.UNKNOWN.key()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0" * 6),
        (b"\0\0\0", b"\0" * 6),
        (b"\xff\xff\0\0", b"\0" * 6),
        (b"\0\0\0\x02", b"\0" * 6),
        (b"\0\0\0\0", None),
        (b"\0\0\0\0", b"\0" * 5),
        (b"\0\0\0\0", b"\xff\xff\0\0\0\0"),
    ],
)
def test_malformed_marker_is_invalid(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidRecordError):
        EndTransactionMarker.deserialize(control(key, value))


def test_markers_need_a_transactional_control_batch() -> None:
    marker = EndTransactionMarker(ControlRecordType.COMMIT, 0)

    with pytest.raises(ValueError, match="transactional"):
        MemoryRecordsBuilder(is_control_batch=True).append_end_txn_marker(0, marker)
    with pytest.raises(ValueError, match="control"):
        MemoryRecordsBuilder(producer_id=1, is_transactional=True).append_end_txn_marker(0, marker)


def test_timestamp_types_have_configuration_names() -> None:
    assert TimestampType.for_name("CreateTime") is TimestampType.CREATE_TIME
    assert TimestampType.for_name("LogAppendTime") is TimestampType.LOG_APPEND_TIME
    with pytest.raises(ValueError, match="Never"):
        TimestampType.for_name("Never")
    assert SimpleRecord() == (-1, None, None, ())
