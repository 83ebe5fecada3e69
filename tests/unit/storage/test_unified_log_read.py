"""UnifiedLog: reading, and how far readers may see."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.errors import OffsetOutOfRangeError
from kafkapy.common.record.file_records import FileRecords
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.unified_log import UnifiedLog
from tests.unit.storage.harness import (
    StorageHarness,
    append,
    joined,
    marker,
    read_all,
    records,
    values_of,
)

UNCOMMITTED = FetchIsolation.HIGH_WATERMARK
COMMITTED = FetchIsolation.TXN_COMMITTED


def transactional(log: UnifiedLog, producer_id: int, sequence: int, *values: str) -> int:
    return append(
        log,
        *values,
        producer_id=producer_id,
        producer_epoch=0,
        sequence=sequence,
        transactional=True,
    )


def end(log: UnifiedLog, producer_id: int, *, commit: bool) -> None:
    log.append_as_leader(marker(producer_id, 0, commit=commit), 0, origin=AppendOrigin.COORDINATOR)
    log.update_high_watermark(log.log_end_offset)


def test_read_returns_a_slice_of_the_file(storage: StorageHarness) -> None:
    log = storage.open_log()
    for value in ("a", "b", "c"):
        append(log, value)

    info = log.read(1, 1 << 20, FetchIsolation.LOG_END, min_one_message=True)

    assert isinstance(info.records, FileRecords)
    size = log.size // 3
    assert (info.records.position, info.records.size_in_bytes) == (size, 2 * size)
    assert info.fetch_offset_metadata == LogOffsetMetadata(1, 0, size)
    assert info.aborted_transactions is None


def test_read_above_high_watermark_returns_empty(storage: StorageHarness) -> None:
    log = storage.open_log()
    for value in ("a", "b", "c"):
        append(log, value)
    log.update_high_watermark(2)

    assert values_of(log, isolation=UNCOMMITTED) == ["a", "b"]
    info = log.read(2, 1000, UNCOMMITTED, min_one_message=True)
    assert (info.records.size_in_bytes, info.fetch_offset_metadata.message_offset) == (0, 2)
    info = log.read(3, 1000, UNCOMMITTED, min_one_message=True)
    assert (info.records.size_in_bytes, info.fetch_offset_metadata.message_offset) == (0, 3)


def test_high_watermark_inside_a_batch_hides_the_batch(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a", "b")
    append(log, "c", "d", "e")
    log.update_high_watermark(3)

    assert values_of(log, isolation=UNCOMMITTED) == ["a", "b"]


def test_high_watermark_in_an_older_segment_caps_the_read(storage: StorageHarness) -> None:
    log = storage.open_log()
    for i in range(6):
        append(log, str(i))
        if i % 2:
            log.roll()
    log.update_high_watermark(3)

    assert values_of(log, isolation=UNCOMMITTED) == ["0", "1", "2"]


def test_minimum_one_message_overrides_max_length(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "x" * 500)
    append(log, "y")

    whole = log.read(0, 1, FetchIsolation.LOG_END, min_one_message=True)
    cut = log.read(0, 100, FetchIsolation.LOG_END, min_one_message=False)
    nothing = log.read(0, 0, FetchIsolation.LOG_END, min_one_message=False)

    assert (len(list(whole.records.batches())), whole.first_entry_incomplete) == (1, False)
    assert (cut.records.size_in_bytes, cut.first_entry_incomplete) == (100, True)
    assert (nothing.records.size_in_bytes, nothing.first_entry_incomplete) == (0, False)


@pytest.mark.parametrize("offset", [-1, 2, 6, 100])
def test_read_outside_the_log_is_out_of_range(storage: StorageHarness, offset: int) -> None:
    log = storage.open_log()
    for i in range(5):
        append(log, str(i))
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(3, "a test")

    with pytest.raises(OffsetOutOfRangeError):
        log.read(offset, 100, FetchIsolation.LOG_END, min_one_message=True)


def test_read_at_the_log_end_is_empty(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a")

    info = log.read(1, 100, FetchIsolation.LOG_END, min_one_message=True)

    assert info.records.size_in_bytes == 0
    assert info.fetch_offset_metadata == log.log_end_offset_metadata


def test_read_of_a_gap_finds_the_next_record(storage: StorageHarness) -> None:
    log = storage.open_log()
    log.append_as_follower(records("a", offset=0, leader_epoch=0))
    log.roll()
    log.append_as_follower(records("b", offset=50, leader_epoch=0))
    log.roll()
    log.append_as_follower(records("c", offset=100, leader_epoch=0))

    assert values_of(log, start=10) == ["b", "c"]
    assert values_of(log, start=51) == ["c"]


@pytest.mark.parametrize("max_length", [1, 150, 1000, 1 << 20])
def test_fetching_on_sees_every_record_once(storage: StorageHarness, max_length: int) -> None:
    log = storage.open_log(storage.config(segment_bytes=600, index_interval_bytes=100))
    for i in range(40):
        append(log, *(f"{i}-{j}" for j in range(i % 4 + 1)))

    found = read_all(log, max_length=max_length)

    assert [r.offset for r in found] == list(range(log.log_end_offset))
    assert log.number_of_segments > 5


# --- high watermark


def test_high_watermark_stays_within_the_log(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a")

    assert log.update_high_watermark(100) == 1
    assert log.update_high_watermark(-5) == 0
    assert log.maybe_update_high_watermark(1) == 1
    assert log.maybe_update_high_watermark(1) is None


def test_leaders_high_watermark_never_goes_back(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a")
    first = log.log_end_offset_metadata
    append(log, "b")

    old = log.maybe_increment_high_watermark(log.log_end_offset_metadata)
    back = log.maybe_increment_high_watermark(first)

    assert old is not None
    assert (old.message_offset, back, log.high_watermark) == (0, None, 2)
    with pytest.raises(ValueError, match="beyond"):
        log.maybe_increment_high_watermark(LogOffsetMetadata(3, 0, 1000))


def test_high_watermark_follows_a_roll(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a")
    log.update_high_watermark(1)

    log.roll()

    assert log.fetch_high_watermark_metadata() == LogOffsetMetadata(1, 1, 0)


def test_high_watermark_from_a_checkpoint_is_looked_up(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a")
    position = log.size
    append(log, "b")
    log.update_high_watermark(1)

    assert log.fetch_high_watermark_metadata() == LogOffsetMetadata(1, 0, position)
    assert log.fetch_offset_snapshot() == (
        0,
        log.log_end_offset_metadata,
        LogOffsetMetadata(1, 0, position),
        LogOffsetMetadata(1, 0, position),
    )


# --- transactions


def test_open_transaction_holds_back_committed_readers(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "plain")
    transactional(log, 1, 0, "a", "b")
    append(log, "plain")
    log.update_high_watermark(log.log_end_offset)

    assert log.last_stable_offset == 1
    assert values_of(log, isolation=COMMITTED) == ["plain"]
    assert len(values_of(log, isolation=UNCOMMITTED)) == 4

    end(log, 1, commit=True)

    assert log.last_stable_offset == log.log_end_offset
    assert len(read_all(log, isolation=COMMITTED)) == 5


def test_last_stable_offset_waits_for_the_marker_to_be_replicated(storage: StorageHarness) -> None:
    log = storage.open_log()
    transactional(log, 1, 0, "a")
    log.update_high_watermark(1)

    log.append_as_leader(marker(1, 0, commit=True), 0, origin=AppendOrigin.COORDINATOR)
    before = log.last_stable_offset
    log.update_high_watermark(2)

    assert (before, log.last_stable_offset) == (0, 2)


def test_aborted_transactions_are_listed(storage: StorageHarness) -> None:
    log = storage.open_log()
    transactional(log, 1, 0, "a")
    transactional(log, 2, 0, "b")
    end(log, 1, commit=False)
    end(log, 2, commit=True)
    transactional(log, 1, 1, "c")
    end(log, 1, commit=False)

    info = log.read(0, 1 << 20, COMMITTED, min_one_message=True)
    later = log.read(3, 1 << 20, COMMITTED, min_one_message=True)

    assert info.aborted_transactions is not None
    assert [(t.producer_id, t.first_offset) for t in info.aborted_transactions] == [(1, 0), (1, 4)]
    assert later.aborted_transactions is not None
    assert [(t.producer_id, t.first_offset) for t in later.aborted_transactions] == [(1, 4)]


def test_aborted_transactions_are_found_across_segments(storage: StorageHarness) -> None:
    log = storage.open_log()
    transactional(log, 1, 0, "a")
    log.roll()
    append(log, "x")
    log.roll()
    end(log, 1, commit=False)

    info = log.read(0, 1 << 20, COMMITTED, min_one_message=True)

    assert [(t.producer_id, t.last_offset) for t in info.aborted_transactions or ()] == [(1, 2)]


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_a_restart(storage: StorageHarness, clean: bool) -> None:
    log = storage.open_log()
    transactional(log, 1, 0, "a")
    end(log, 1, commit=False)
    transactional(log, 2, 0, "b")
    if clean:
        log.close()

    log = storage.open_log(clean=clean)
    log.update_high_watermark(log.log_end_offset)

    assert log.last_stable_offset == 2
    assert [t.producer_id for t in log.collect_aborted_transactions(0, 10)] == [1]
    end(log, 2, commit=True)
    assert log.last_stable_offset == 4


def test_log_start_beyond_an_open_transaction_moves_the_stable_offset(
    storage: StorageHarness,
) -> None:
    log = storage.open_log()
    transactional(log, 1, 0, "a", "b")
    append(log, "c")
    log.update_high_watermark(3)

    log.maybe_increment_log_start_offset(2, "a test")

    assert log.last_stable_offset == 2


@settings(deadline=None, derandomize=True, max_examples=25)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 200)), min_size=1, max_size=30),
    interval=st.sampled_from([0, 100, 4096]),
)
def test_every_offset_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[int, int]], interval: int
) -> None:
    storage = StorageHarness(tmp_path_factory.mktemp("log"))
    log = storage.open_log(storage.config(segment_bytes=2000, index_interval_bytes=interval))
    written: list[str] = []
    for count, size in sizes:
        batch = [f"{len(written) + i}:".ljust(size, "x") for i in range(count)]
        append(log, *batch)
        written += batch

    for offset in range(log.log_end_offset):
        info = log.read(offset, 1, FetchIsolation.LOG_END, min_one_message=True)
        first = [r for b in info.records.batches() for r in b.records() if r.offset == offset]
        assert first[0].value == written[offset].encode()
    log.close()


def test_joined_batches_of_a_follower_are_read_back(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(index_interval_bytes=0))
    for start in range(0, 60, 3):
        log.append_as_follower(
            joined(*(records(str(start + i), offset=start + i, leader_epoch=0) for i in range(3)))
        )

    assert [values_of(log, start=i)[0] for i in range(60)] == [str(i) for i in range(60)]
