"""From batches to records: positions, markers, aborted transactions, damage."""

import pytest

from kafkapy.clients.consumer.completed_fetch import CompletedFetch
from kafkapy.clients.consumer.consumer_errors import RecordDeserializationError
from kafkapy.clients.consumer.fetch_config import FetchConfig
from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import KafkaError
from kafkapy.common.protocol.messages.fetch import FetchResponse
from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Header, SimpleRecord, TimestampType
from kafkapy.common.types import TopicPartition
from tests.helpers.records import end_txn_marker, forged, joined, record_bytes, records
from tests.helpers.records import forged_body as batch_around

TP = TopicPartition("t", 3)


def fetch(
    *batches: MemoryRecords,
    offset: int = 0,
    aborted: tuple[tuple[int, int], ...] = (),
    config: FetchConfig | None = None,
) -> CompletedFetch:
    """`aborted` is of (producer id, first offset)."""
    transaction = FetchResponse.AbortedTransaction
    completed = CompletedFetch(
        TP,
        FetchResponse.PartitionData(
            partition_index=TP.partition,
            high_watermark=100,
            aborted_transactions=[
                transaction(producer_id=producer_id, first_offset=first)
                for producer_id, first in aborted
            ],
            records=joined(*batches).buffer,
        ),
        fetch_offset=offset,
        config=config or FetchConfig(),
    )
    completed.initialize()
    return completed


def offsets(completed: CompletedFetch, max_records: int = 1_000) -> list[int]:
    return [record.offset for record in completed.fetch_records(max_records)]


def test_records_come_in_portions_across_batches() -> None:
    completed = fetch(records("a", "b", "c"), records("d", "e", offset=3, leader_epoch=4))

    assert offsets(completed, 2) == [0, 1]
    assert (completed.next_fetch_offset, completed.is_consumed) == (2, False)
    assert offsets(completed, 2) == [2, 3]
    assert (completed.next_fetch_offset, completed.last_epoch) == (4, 4)
    assert offsets(completed, 2) == [4]
    assert completed.is_consumed
    assert completed.next_fetch_offset == 5
    assert completed.fetch_records(5) == []


@pytest.mark.parametrize(
    ("codec", "magic"),
    [
        (codec, magic)
        for codec in CompressionType
        for magic in ((2,) if codec is CompressionType.ZSTD else (0, 1, 2))
    ],
)
def test_every_format_gives_the_same_records(codec: CompressionType, magic: int) -> None:
    batch = records("a", "b", key="k", codec=codec, magic=magic, offset=10)

    got = fetch(batch, offset=10).fetch_records(10)

    assert [(r.topic, r.partition, r.offset, r.key, r.value) for r in got] == [
        ("t", 3, 10, b"k", b"a"),
        ("t", 3, 11, b"k", b"b"),
    ]
    assert got[0].timestamp == (-1 if magic == 0 else 1_700_000_000_000)
    assert (got[0].serialized_key_size, got[0].serialized_value_size) == (1, 1)


def test_nulls_and_headers_are_kept() -> None:
    batch = records(SimpleRecord(5, None, None, (Header("h", b"v"), Header("n", None))))

    (got,) = fetch(batch).fetch_records(1)

    assert (got.key, got.value) == (None, None)
    assert (got.serialized_key_size, got.serialized_value_size) == (-1, -1)
    assert got.headers == (Header("h", b"v"), Header("n", None))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 127, 128, 8_191, 8_192, 70_000])
def test_sizes_at_the_edges_of_their_encoding(size: int) -> None:
    batch = records(SimpleRecord(2**40, b"k" * size, b"v" * size), "next", timestamp=2**40 + 9_000)

    first, second = fetch(batch).fetch_records(10)

    assert (first.key, first.value) == (b"k" * size, b"v" * size)
    assert second.timestamp - first.timestamp == 9_000


def test_log_append_time_is_that_of_the_batch() -> None:
    batch = records(
        "a", "b", timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=1_234, timestamp=1
    )

    assert [r.timestamp for r in fetch(batch).fetch_records(2)] == [1_234, 1_234]
    assert fetch(batch).fetch_records(1)[0].timestamp_type is TimestampType.LOG_APPEND_TIME


def test_a_position_inside_a_batch_skips_what_is_before_it() -> None:
    completed = fetch(records("a", "b", "c", offset=10), offset=12)

    assert offsets(completed) == [12]


def test_offsets_that_compaction_removed_from_the_end_are_passed_over() -> None:
    completed = fetch(forged(records("a", "b"), last_offset_delta=9))

    assert offsets(completed) == [0, 1]
    assert completed.next_fetch_offset == 10


def test_markers_take_offsets_and_are_not_records() -> None:
    completed = fetch(
        records("a", producer_id=7, producer_epoch=0, sequence=0, transactional=True),
        end_txn_marker(ControlRecordType.COMMIT, offset=1),
        records("b", offset=2),
    )

    assert offsets(completed) == [0, 2]
    assert completed.next_fetch_offset == 3


def transaction(*values: str, offset: int, producer_id: int) -> MemoryRecords:
    return records(
        *values,
        offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        sequence=0,
        transactional=True,
    )


def marker(kind: ControlRecordType, *, offset: int, producer_id: int) -> MemoryRecords:
    return end_txn_marker(kind, offset=offset, producer_id=producer_id)


@pytest.mark.parametrize(
    ("read_committed", "expected"), [(True, [2, 3, 5, 8]), (False, [0, 1, 2, 3, 5, 8])]
)
def test_aborted_transactions_are_left_out_when_reading_committed(
    read_committed: bool, expected: list[int]
) -> None:
    completed = fetch(
        transaction("x", "y", offset=0, producer_id=1),
        transaction("a", offset=2, producer_id=2),
        records("plain", offset=3),
        marker(ControlRecordType.ABORT, offset=4, producer_id=1),
        transaction("b", offset=5, producer_id=1),
        marker(ControlRecordType.COMMIT, offset=6, producer_id=2),
        marker(ControlRecordType.COMMIT, offset=7, producer_id=1),
        records("plain", offset=8),
        aborted=((1, 0),) if read_committed else (),
        config=FetchConfig(read_committed=read_committed),
    )

    assert offsets(completed) == expected
    assert completed.next_fetch_offset == 9


def test_a_transaction_that_began_before_the_fetch_is_left_out_too() -> None:
    completed = fetch(
        transaction("x", offset=10, producer_id=1),
        marker(ControlRecordType.ABORT, offset=11, producer_id=1),
        offset=10,
        aborted=((1, 3),),
        config=FetchConfig(read_committed=True),
    )

    assert offsets(completed) == []
    assert (completed.next_fetch_offset, completed.is_consumed) == (12, True)


def damaged() -> MemoryRecords:
    return forged(records("c", offset=2), crc=1)


def test_a_wrong_checksum_is_raised_once_what_is_before_has_been_had() -> None:
    completed = fetch(records("a", "b"), damaged())

    assert offsets(completed) == [0, 1]
    for _ in range(2):
        with pytest.raises(KafkaError, match="t-3 at offset 2 is corrupt"):
            completed.fetch_records(10)


def test_checksums_may_be_left_unchecked() -> None:
    completed = fetch(records("a", "b"), damaged(), config=FetchConfig(check_crcs=False))

    assert offsets(completed) == [0, 1, 2]


def test_records_before_a_broken_one_are_returned() -> None:
    body = record_bytes(b"a") + record_bytes(b"b", offset_delta=1) + b"\x7f\x7f"
    completed = fetch(batch_around(body, count=3))

    assert offsets(completed) == [0, 1]
    assert completed.next_fetch_offset == 2
    with pytest.raises(KafkaError, match="cannot be read"):
        completed.fetch_records(10)


def test_a_part_of_a_batch_alone_is_an_error() -> None:
    whole = records("a").buffer
    completed = CompletedFetch(
        TP,
        FetchResponse.PartitionData(records=whole[:-1]),
        fetch_offset=0,
        config=FetchConfig(),
    )

    with pytest.raises(KafkaError, match=r"max\.partition\.fetch\.bytes"):
        completed.initialize()


def test_a_part_of_a_batch_at_the_end_is_left_for_the_next_fetch() -> None:
    cut = MemoryRecords(bytearray(records("b", offset=1).buffer)[:-1])

    completed = fetch(records("a"), cut)

    assert offsets(completed) == [0]
    assert completed.next_fetch_offset == 1


def test_a_deserializer_that_fails_names_the_record_and_keeps_those_before() -> None:
    config = FetchConfig(value_deserializer=lambda topic, headers, data: int(data))
    completed = fetch(records("1", "2", "x", "4"), config=config)

    assert [r.value for r in completed.fetch_records(10)] == [1, 2]
    assert completed.next_fetch_offset == 2
    with pytest.raises(RecordDeserializationError, match="value of the record at offset 2") as e:
        completed.fetch_records(10)
    assert isinstance(e.value.__cause__, ValueError)


def test_draining_ends_it() -> None:
    completed = fetch(records("a", "b"))
    completed.fetch_records(1)

    completed.drain()

    assert completed.is_consumed
    assert completed.fetch_records(10) == []
