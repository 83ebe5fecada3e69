"""Taking records out of batches, as compaction does."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import InvalidRecordError
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.record import Header, Record, SimpleRecord, TimestampType
from kafkapy.common.record.record_batch import MutableRecordBatch
from kafkapy.common.record.record_filter import (
    BatchRetention,
    BatchRetentionResult,
    FilteredBatch,
    RecordFilter,
)
from tests.helpers.records import forged_body, record, record_bytes, records

NOW_MS = 1_700_000_100_000
RETENTION_MS = 5_000
CODECS = list(CompressionType)


class KeepOffsets(RecordFilter):
    """Keeps the records at given offsets."""

    def __init__(
        self,
        offsets: set[int],
        retention: BatchRetention = BatchRetention.DELETE_EMPTY,
        *,
        is_marker_for_empty_txn: bool = False,
    ) -> None:
        super().__init__(NOW_MS, RETENTION_MS)
        self._offsets = offsets
        self._result = BatchRetentionResult(retention, is_marker_for_empty_txn)

    def check_batch_retention(self, batch: MutableRecordBatch) -> BatchRetentionResult:
        return self._result

    def should_retain_record(
        self, batch: MutableRecordBatch, offset: int, key: bytes | None, *, has_value: bool
    ) -> bool:
        return offset in self._offsets


def left_of(filtered: FilteredBatch) -> DefaultRecordBatch:
    assert filtered.records is not None
    (batch,) = filtered.records.batches()
    assert isinstance(batch, DefaultRecordBatch)
    batch.ensure_valid()
    return batch


def content(found: Record) -> tuple[object, ...]:
    return found.offset, found.timestamp, found.key, found.value, found.headers, found.sequence


SIMPLE = st.builds(
    SimpleRecord,
    timestamp=st.integers(0, 2**45),
    key=st.one_of(st.none(), st.binary(max_size=80)),
    value=st.one_of(st.none(), st.binary(max_size=300)),
    headers=st.lists(st.builds(Header, st.text(max_size=5), st.binary(max_size=5)), max_size=2).map(
        tuple
    ),
)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.lists(SIMPLE, min_size=1, max_size=12), st.data())
def test_the_kept_records_and_the_header_stay_as_they_were(
    simple: list[SimpleRecord], data: st.DataObject
) -> None:
    codec = data.draw(st.sampled_from(CODECS))
    kept = data.draw(st.sets(st.integers(100, 99 + len(simple))))
    source = records(*simple, offset=100, codec=codec, producer_id=5, producer_epoch=1, sequence=7)
    (batch,) = source.batches()
    originals = [content(r) for r in batch.records() if r.offset in kept]

    filtered = KeepOffsets(kept).filter_batch(batch)

    assert (filtered.messages_read, filtered.messages_retained) == (len(simple), len(originals))
    if not kept:
        assert filtered.records is None
        return
    left = left_of(filtered)
    assert [content(r) for r in left.records()] == originals
    assert (left.base_offset, left.last_offset) == (100, 99 + len(simple))
    assert (left.producer_id, left.producer_epoch, left.base_sequence) == (5, 1, 7)
    assert left.last_sequence == 6 + len(simple)
    assert left.compression_type is codec
    assert left.max_timestamp == filtered.max_timestamp == max(r[1] for r in originals)
    has_tombstone = any(r[3] is None for r in originals)
    assert left.delete_horizon_ms == (NOW_MS + RETENTION_MS if has_tombstone else None)


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_of_several_pieces_is_filtered_like_any_other(codec: CompressionType) -> None:
    rng = random.Random(3)
    sizes = [10, 1_500_000, 100, 1_048_570, 3, 700_000, 0, 2_000_000]
    simple = [record(rng.randbytes(size), key=str(i)) for i, size in enumerate(sizes)]
    (batch,) = records(*simple, codec=codec).batches()

    left = left_of(KeepOffsets({1, 3, 4, 7}).filter_batch(batch))

    assert [(r.offset, len(r.value or b"")) for r in left.records()] == [
        (i, sizes[i]) for i in (1, 3, 4, 7)
    ]


def test_log_append_time_is_the_batchs_own() -> None:
    source = records(
        "a",
        "b",
        timestamp=1000,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        log_append_time=9000,
    )
    (batch,) = source.batches()

    left = left_of(KeepOffsets({1}).filter_batch(batch))

    assert left.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert ([r.timestamp for r in left.records()], left.max_timestamp) == ([9000], 9000)


def test_a_whole_batch_is_the_same_bytes() -> None:
    source = records("a", "b")
    (batch,) = source.batches()

    filtered = KeepOffsets({0, 1}).filter_batch(batch)

    assert filtered.records == source
    assert (filtered.last_offset, filtered.max_timestamp) == (1, batch.max_timestamp)


def test_a_horizon_that_is_there_stays() -> None:
    (batch,) = records(record(None, key="a"), record("v", key="b")).batches()
    once = left_of(KeepOffsets({0, 1}).filter_batch(batch))
    later = KeepOffsets({0})
    later.current_time_ms += 1_000_000

    twice = left_of(later.filter_batch(once))

    assert once.delete_horizon_ms == twice.delete_horizon_ms == NOW_MS + RETENTION_MS
    assert [r.timestamp for r in twice.records()] == [r.timestamp for r in batch.records()][:1]


def test_the_marker_of_an_empty_transaction_gets_a_horizon() -> None:
    (batch,) = records("marker").batches()

    filtered = KeepOffsets({0}, is_marker_for_empty_txn=True).filter_batch(batch)

    assert left_of(filtered).delete_horizon_ms == NOW_MS + RETENTION_MS


@pytest.mark.parametrize("codec", CODECS)
def test_an_emptied_batch_is_a_header(codec: CompressionType) -> None:
    source = records(
        "a",
        "b",
        offset=10,
        codec=codec,
        producer_id=5,
        producer_epoch=1,
        sequence=7,
        leader_epoch=3,
        transactional=True,
    )
    (batch,) = source.batches()

    left = left_of(KeepOffsets(set(), BatchRetention.RETAIN_EMPTY).filter_batch(batch))

    assert (left.size_in_bytes, left.count, list(left.records())) == (61, 0, [])
    assert (left.base_offset, left.last_offset, left.leader_epoch) == (10, 11, 3)
    assert (left.producer_id, left.producer_epoch, left.last_sequence) == (5, 1, 8)
    assert left.is_transactional
    assert left.max_timestamp == batch.max_timestamp
    assert not left.is_compressed


def test_an_emptied_batch_can_be_emptied_again() -> None:
    (batch,) = records("a", producer_id=5, producer_epoch=1, sequence=0).batches()
    empty = left_of(KeepOffsets(set(), BatchRetention.RETAIN_EMPTY).filter_batch(batch))

    again = KeepOffsets(set(), BatchRetention.RETAIN_EMPTY).filter_batch(empty)
    gone = KeepOffsets(set()).filter_batch(empty)

    assert left_of(again).buffer == empty.buffer
    assert gone.records is None


def test_a_deleted_batch_is_not_read() -> None:
    (batch,) = forged_body(b"no record").batches()

    filtered = KeepOffsets({0}, BatchRetention.DELETE).filter_batch(batch)

    assert (filtered.records, filtered.messages_read) == (None, 0)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"", 1),
        (record_bytes(key=b"k")[:-3], 1),
        (record_bytes(key=b"k"), 2),
        (record_bytes(key=b"k") * 2, 1),
        (b"\x01" + record_bytes(key=b"k")[1:], 1),
        (b"\x08\x00\x00\x00\x7e", 1),
        (b"\xff\xff\xff\xff\xff\xff" + record_bytes(key=b"k"), 1),
    ],
)
def test_a_malformed_section_is_refused(body: bytes, count: int) -> None:
    (batch,) = forged_body(body, count=count).batches()

    with pytest.raises(InvalidRecordError):
        KeepOffsets({0}).filter_batch(batch)
