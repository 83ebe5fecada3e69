"""Compacting transactions: aborted data goes at once, markers when nothing needs them."""

import os

import pytest

from kafkapy.common.record.file_channel_record_batch import FileChannelRecordBatch
from kafkapy.storage.unified_log import UnifiedLog
from tests.helpers.mock_time import MockTime
from tests.unit.storage.cleaning import (
    DELETE_RETENTION_MS,
    TransactionalProducer,
    clean,
    compacted_log,
    pairs_of,
    put,
    read_committed,
    roll_and_clean,
)
from tests.unit.storage.harness import StorageHarness


def batches(log: UnifiedLog) -> list[FileChannelRecordBatch]:
    return [batch for segment in log.segments for batch in segment.log.batches()]


def marker_offsets(log: UnifiedLog) -> list[int]:
    return [r.offset for b in batches(log) if b.is_control_batch for r in b.records()]


def aborted_in_index(log: UnifiedLog) -> list[tuple[int, int, int]]:
    return [
        (txn.producer_id, txn.first_offset, txn.last_offset)
        for segment in log.segments
        for txn in segment.transaction_index.all_aborted_txns()
    ]


def committed_pairs(log: UnifiedLog) -> list[tuple[str, str]]:
    return [((r.key or b"").decode(), (r.value or b"").decode()) for r in read_committed(log)]


def test_aborted_records_go_and_do_not_hide_committed_ones(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    first, second = (TransactionalProducer(log, time, pid) for pid in (1, 2))
    first.put(("a", "committed"), ("b", "committed"))
    second.put(("a", "aborted"), ("c", "aborted"))
    second.abort()
    first.commit()

    end = roll_and_clean(log, time)

    assert end == log.log_end_offset
    assert pairs_of(log) == [("a", "committed"), ("b", "committed")]
    assert committed_pairs(log) == [("a", "committed"), ("b", "committed")]


def test_compaction_stops_at_the_first_open_transaction(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put(log, time, ("a", "1"))
    put(log, time, ("a", "2"))
    log.roll()
    TransactionalProducer(log, time, 1).put(("a", "3"))
    log.roll()
    log.update_high_watermark(log.log_end_offset)

    end, _ = clean(log, time, up_to=log.last_stable_offset)

    assert end == 2
    assert pairs_of(log) == [("a", "2"), ("a", "3")]


def test_a_transaction_over_several_segments_is_aborted_in_all_of_them(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage, segment_bytes=400)
    first, second = (TransactionalProducer(log, time, pid) for pid in (1, 2))
    for i in range(10):
        first.put((f"k{i}", "aborted" * 5))
        second.put((f"k{i}", "committed" * 5))
    first.abort()
    second.commit()
    assert log.number_of_segments > 5

    roll_and_clean(log, time)

    kept = [(f"k{i}", "committed" * 5) for i in range(10)]
    assert pairs_of(log) == kept
    assert committed_pairs(log) == kept


def test_a_commit_marker_goes_some_time_after_its_last_record(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    producer = TransactionalProducer(log, time, 1)
    producer.put(("a", "1"), ("b", "1"))
    marker = producer.commit()
    producer.put(("a", "2"))
    last_marker = producer.commit()

    roll_and_clean(log, time)
    assert marker_offsets(log) == [marker, last_marker]

    # Its records are all gone; the marker gets its horizon with this round.
    put(log, time, ("b", "2"))
    roll_and_clean(log, time)
    assert marker_offsets(log) == [marker, last_marker]
    clean(log, time)
    time.sleep(DELETE_RETENTION_MS)
    clean(log, time)

    assert marker_offsets(log) == [last_marker]
    assert pairs_of(log) == [("a", "2"), ("b", "2")]
    assert committed_pairs(log) == [("a", "2"), ("b", "2")]


def test_a_marker_without_records_gets_a_delete_horizon(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    producer = TransactionalProducer(log, time, 1)
    producer.commit()
    producer.put(("a", "1"))
    producer.commit()

    roll_and_clean(log, time)

    horizons = [
        batch.load_full_batch().delete_horizon_ms  # type: ignore[attr-defined]
        for batch in batches(log)
        if batch.is_control_batch
    ]
    assert horizons == [time.milliseconds() + DELETE_RETENTION_MS, None]


def test_the_last_batch_of_a_producer_keeps_its_marker(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    producer = TransactionalProducer(log, time, 1)
    producer.put(("a", "1"))
    marker = producer.commit()
    put(log, time, ("a", "2"))
    roll_and_clean(log, time)
    clean(log, time)
    time.sleep(DELETE_RETENTION_MS)

    clean(log, time)

    # The empty batch is still one of the transaction, so its end must be told.
    assert [(b.base_offset, b.count) for b in batches(log)] == [(0, 0), (1, 1), (2, 1)]
    assert marker_offsets(log) == [marker]


def test_an_abort_keeps_its_index_entry_as_long_as_its_marker(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    producer = TransactionalProducer(log, time, 1)
    first = producer.put(("a", "aborted"))
    marker = producer.abort()
    put(log, time, ("b", "1"))

    roll_and_clean(log, time)
    # The producer's last batch stays, empty.
    assert aborted_in_index(log) == [(1, first, marker)]
    assert committed_pairs(log) == [("b", "1")]

    time.sleep(100_000_000)  # the producer expires
    log.remove_expired_producers()
    clean(log, time)  # the batch goes
    clean(log, time)  # the marker gets its horizon
    assert marker_offsets(log) == [marker]
    time.sleep(DELETE_RETENTION_MS)
    clean(log, time)

    assert marker_offsets(log) == []
    assert aborted_in_index(log) == []
    assert not [name for name in os.listdir(log.dir) if name.endswith(".txnindex")]
    assert pairs_of(log) == [("b", "1")]


def test_the_transaction_index_survives_a_restart(storage: StorageHarness, time: MockTime) -> None:
    log = compacted_log(storage)
    producer, other = (TransactionalProducer(log, time, pid) for pid in (1, 2))
    producer.put(("a", "aborted"))
    other.put(("a", "committed"))
    producer.abort()
    other.commit()
    roll_and_clean(log, time)
    before = aborted_in_index(log)
    log.close()

    log = storage.open_log(log.config, recovery_point=log.log_end_offset)
    log.update_high_watermark(log.log_end_offset)

    assert before == aborted_in_index(log) != []
    assert committed_pairs(log) == [("a", "committed")]


@pytest.mark.parametrize("crash", [False, True])
def test_producers_are_fenced_after_their_data_is_gone(
    storage: StorageHarness, time: MockTime, crash: bool
) -> None:
    log = compacted_log(storage)
    producer = TransactionalProducer(log, time, 1, epoch=5)
    producer.put(("a", "aborted"))
    producer.abort()
    put(log, time, ("b", "1"))
    roll_and_clean(log, time)
    log.flush()
    if not crash:
        log.close()

    log = storage.open_log(
        log.config, clean=not crash, recovery_point=0 if crash else log.log_end_offset
    )

    log.update_high_watermark(log.log_end_offset)
    (entry,) = log.active_producers()
    assert (entry.producer_id, entry.producer_epoch) == (1, 5)
    assert log.last_stable_offset == log.log_end_offset == 3


def test_an_empty_control_batch_is_read_again(storage: StorageHarness, time: MockTime) -> None:
    """A producer whose last record is a marker, and a marker that nothing needs."""
    log = compacted_log(storage)
    producer = TransactionalProducer(log, time, 1)
    marker = producer.commit()
    put(log, time, ("a", "1"))
    roll_and_clean(log, time)
    time.sleep(DELETE_RETENTION_MS)
    clean(log, time)

    assert [(b.base_offset, b.count) for b in batches(log)] == [(marker, 0), (1, 1)]

    clean(log, time)

    assert [(b.base_offset, b.count) for b in batches(log)] == [(marker, 0), (1, 1)]
    assert committed_pairs(log) == [("a", "1")]
