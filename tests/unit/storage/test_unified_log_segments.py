"""UnifiedLog: rolling, retention, truncation, lookup by time."""

import os

import pytest

from kafkapy.common.errors import OffsetOutOfRangeError
from kafkapy.storage.log_offset_lookup import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)
from kafkapy.storage.unified_log import UnifiedLog
from tests.unit.storage.harness import TIMESTAMP, StorageHarness, append, records, values_of


def fill(log: UnifiedLog, count: int, *, per_segment: int = 2) -> None:
    """One record a batch, `per_segment` a segment, one second apart."""
    for i in range(count):
        if i and i % per_segment == 0:
            log.roll()
        append(log, str(i), timestamp=TIMESTAMP + i * 1000)
    log.update_high_watermark(log.log_end_offset)


def bases(log: UnifiedLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


# --- rolling


def test_segment_rolls_when_it_would_grow_too_large(storage: StorageHarness) -> None:
    size = records("x").size_in_bytes
    log = storage.open_log(storage.config(segment_bytes=size * 2))

    for _ in range(5):
        append(log, "x")

    assert bases(log) == [0, 2, 4]


def test_segment_rolls_by_the_time_of_its_records(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(segment_ms=1000))

    for timestamp in (0, 900, 1000, 1001, 2001, 500):
        append(log, "x", timestamp=TIMESTAMP + timestamp)

    assert bases(log) == [0, 3]
    append(log, "x", timestamp=TIMESTAMP + 2002)
    assert bases(log) == [0, 3, 6]


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_segment_of_a_compacted_log_rolls_by_max_compaction_lag(
    storage: StorageHarness, policy: str
) -> None:
    """The active segment is never compacted: it must be closed for that in time."""
    log = storage.open_log(storage.config(cleanup_policy=(policy,), max_compaction_lag_ms=1000))

    for timestamp in (0, 1000, 1001):
        append(log, "x", timestamp=TIMESTAMP + timestamp)

    assert bases(log) == ([0, 2] if policy == "compact" else [0])


def test_segment_without_timestamps_rolls_by_the_clock(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(segment_ms=1000))
    append(log, "x", timestamp=-1)
    storage.time.sleep(1001)

    append(log, "x", timestamp=-1)

    assert bases(log) == [0, 1]


def test_empty_segment_does_not_roll_by_time(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(segment_ms=1000))
    storage.time.sleep(100_000)

    append(log, "x")

    assert bases(log) == [0]


def test_jitter_brings_the_roll_forward(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(segment_ms=1000, segment_jitter_ms=900))
    rolled_after = 0
    append(log, "x", timestamp=TIMESTAMP)
    while log.number_of_segments == 1:
        rolled_after += 10
        append(log, "x", timestamp=TIMESTAMP + rolled_after)

    assert 100 < rolled_after < 1000


def test_segment_rolls_when_its_index_is_full(storage: StorageHarness) -> None:
    config = storage.config(segment_index_bytes=8 * 3, index_interval_bytes=0)
    log = storage.open_log(config)

    for i in range(10):
        append(log, "x", timestamp=TIMESTAMP + i)

    assert log.number_of_segments > 2
    assert values_of(log) == ["x"] * 10


def test_segment_rolls_when_offsets_are_too_far_apart(storage: StorageHarness) -> None:
    log = storage.open_log()
    log.append_as_follower(records("a", offset=0, leader_epoch=0))

    log.append_as_follower(records("b", offset=(1 << 31) + 5, leader_epoch=0))

    assert bases(log) == [0, (1 << 31) + 5]
    assert values_of(log, start=1) == ["b"]


def test_roll_flushes_the_old_segment_in_the_background(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a", "b")

    log.roll()

    assert log.recovery_point == 2


def test_roll_takes_a_producer_snapshot(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a")

    log.roll()

    assert os.path.exists(f"{log.dir}/00000000000000000001.snapshot")


def test_rolling_an_empty_segment_replaces_it(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "a")
    log.roll()

    log.roll()
    append(log, "b")

    assert bases(log) == [0, 1]
    assert values_of(log) == ["a", "b"]


def test_closed_segments_have_trimmed_indexes(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(index_interval_bytes=0))
    for i in range(4):
        append(log, "x", timestamp=TIMESTAMP + i)

    log.roll()
    append(log, "x")

    first = f"{log.dir}/{0:020d}"
    assert os.path.getsize(f"{first}.index") == 3 * 8
    assert os.path.getsize(f"{first}.timeindex") == 3 * 12
    assert os.path.getsize(f"{log.dir}/{4:020d}.index") == 12000


def test_preallocated_segment_is_trimmed_when_closed(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(preallocate=True, segment_bytes=10_000))
    append(log, "a")
    path = f"{log.dir}/{0:020d}.log"
    size_while_open = os.path.getsize(path)
    log.close()

    log = storage.open_log(storage.config(preallocate=True, segment_bytes=10_000))

    assert size_while_open == 10_000
    assert os.path.getsize(path) == log.size < 200
    append(log, "b")
    assert values_of(log) == ["a", "b"]


# --- flushing


@pytest.mark.parametrize(("every", "recovery_point"), [(1, 5), (3, 3), (100, 0)])
def test_flush_messages_bounds_what_is_not_on_disk(
    storage: StorageHarness, every: int, recovery_point: int
) -> None:
    log = storage.open_log(storage.config(flush_messages=every))

    for _ in range(5):
        append(log, "x")

    assert log.recovery_point == recovery_point


# --- retention


def test_retention_by_time_goes_by_the_youngest_record(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(retention_ms=10_000))
    fill(log, 6)
    storage.time.sleep(13_001)

    deleted = log.delete_old_segments()

    assert (deleted, bases(log), log.log_start_offset) == (2, [4], 4)
    assert values_of(log) == ["4", "5"]


def test_retention_may_take_the_active_segment(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(retention_ms=1000))
    fill(log, 5)
    storage.time.sleep(1_000_000)

    deleted = log.delete_old_segments()

    assert (deleted, bases(log), log.log_start_offset, log.log_end_offset) == (3, [5], 5, 5)
    append(log, "next")
    assert values_of(log) == ["next"]
    assert log.delete_old_segments() == 0


def test_retention_never_passes_the_high_watermark(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(retention_ms=0))
    fill(log, 6)
    log.update_high_watermark(3)
    storage.time.sleep(1_000_000)

    assert log.delete_old_segments() == 1
    assert log.log_start_offset == 2


def test_retention_by_time_is_off_with_minus_one(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(retention_ms=-1))
    fill(log, 6)
    storage.time.sleep(30 * 86_400_000)

    assert log.delete_old_segments() == 0


def test_without_a_policy_everything_stays(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(cleanup_policy=(), retention_ms=1000, retention_bytes=1))
    fill(log, 6)
    storage.time.sleep(1_000_000)

    assert log.delete_old_segments() == 0


def test_records_without_timestamps_age_by_the_file(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(retention_ms=10_000))
    append(log, "a", timestamp=-1)
    log.roll()
    log.update_high_watermark(1)
    now_ms = storage.time.milliseconds()
    for name, age_ms in ((0, 5_000), (0, 15_000)):
        path = f"{log.dir}/{name:020d}.log"
        os.utime(path, ((now_ms - age_ms) / 1000,) * 2)
        deleted = log.delete_old_segments()

        assert deleted == (1 if age_ms > 10_000 else 0)


@pytest.mark.parametrize(("segments_kept", "deleted"), [(1, 2), (2, 1), (3, 0)])
def test_retention_by_size_keeps_at_least_that_much(
    storage: StorageHarness, segments_kept: int, deleted: int
) -> None:
    log = storage.open_log()
    fill(log, 6)
    log.update_config(
        storage.config(retention_ms=-1, retention_bytes=log.size // 3 * segments_kept)
    )

    assert log.delete_old_segments() == deleted


def test_compacted_topic_is_not_cut_by_time_or_size(storage: StorageHarness) -> None:
    config = storage.config(cleanup_policy=("compact",), retention_ms=1, retention_bytes=1)
    log = storage.open_log(config)
    fill(log, 6)
    storage.time.sleep(1_000_000)

    assert log.delete_old_segments() == 0


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_segments_below_the_log_start_go(storage: StorageHarness, policy: str) -> None:
    log = storage.open_log(storage.config(cleanup_policy=(policy,), retention_ms=-1))
    fill(log, 6)
    log.maybe_increment_log_start_offset(3, "a test")

    assert log.delete_old_segments() == 1
    assert bases(log) == [2, 4]
    assert values_of(log) == ["3", "4", "5"]


def test_deleted_files_stay_for_the_delay(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(retention_ms=0, file_delete_delay_ms=1000))
    fill(log, 4)
    storage.time.sleep(10_000)
    log.delete_old_segments()
    waiting = sorted(name for name in os.listdir(log.dir) if name.endswith(".deleted"))

    storage.time.sleep(1000)

    assert f"{0:020d}.log.deleted" in waiting
    assert f"{0:020d}.index.deleted" in waiting
    assert not [name for name in os.listdir(log.dir) if name.endswith(".deleted")]


def test_slice_of_a_deleted_segment_is_still_readable(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(retention_ms=0, file_delete_delay_ms=0))
    fill(log, 4)
    held = log.segments[0].log.slice(0, 1000)
    storage.time.sleep(10_000)

    log.delete_old_segments()

    assert [r.value for r in held.records()] == [b"0", b"1"]


# --- log start offset and truncation


def test_log_start_cannot_pass_the_high_watermark(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log, 4)
    log.update_high_watermark(2)

    with pytest.raises(OffsetOutOfRangeError):
        log.maybe_increment_log_start_offset(3, "a test")
    assert log.maybe_increment_log_start_offset(2, "a test")
    assert not log.maybe_increment_log_start_offset(1, "a test")
    assert log.log_start_offset == 2


@pytest.mark.parametrize("target", range(7))
def test_truncation_leaves_what_is_below(storage: StorageHarness, target: int) -> None:
    log = storage.open_log(storage.config(index_interval_bytes=0))
    fill(log, 6)

    changed = log.truncate_to(target)

    assert changed == (target < 6)
    assert values_of(log) == [str(i) for i in range(target)]
    assert log.high_watermark == target
    assert append(log, "next") == target
    assert values_of(log) == [*(str(i) for i in range(target)), "next"]


def test_truncation_inside_a_batch_removes_the_batch(storage: StorageHarness) -> None:
    log = storage.open_log()
    log.append_as_follower(records("a", "b", offset=0, leader_epoch=0))
    log.append_as_follower(records("c", "d", offset=2, leader_epoch=0))

    log.truncate_to(3)

    assert log.log_end_offset == 3
    assert values_of(log) == ["a", "b"]


def test_truncation_forgets_epochs(storage: StorageHarness) -> None:
    log = storage.open_log()
    for epoch in range(4):
        append(log, "x", epoch=epoch)

    log.truncate_to(2)

    assert log.leader_epoch_cache.epoch_entries == ((0, 0), (1, 1))
    log.close()
    assert storage.open_log().leader_epoch_cache.epoch_entries == ((0, 0), (1, 1))


def test_full_truncation_starts_anew(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log, 6)

    log.truncate_fully_and_start_at(100)

    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (100, 100, 100)
    assert log.leader_epoch_cache.is_empty
    assert append(log, "x") == 100
    log.close()
    log = storage.open_log(log_start_offset=100)
    assert (log.log_start_offset, log.log_end_offset) == (100, 101)


def test_truncation_below_the_first_segment_starts_there(storage: StorageHarness) -> None:
    log = storage.open_log()
    log.truncate_fully_and_start_at(10)
    append(log, "x")

    log.truncate_to(5)

    assert (log.log_start_offset, log.log_end_offset) == (5, 5)


def test_size_is_that_of_all_segments(storage: StorageHarness) -> None:
    log = storage.open_log()
    fill(log, 4)

    files = [f for f in os.listdir(log.dir) if f.endswith(".log")]

    assert log.size == sum(os.path.getsize(f"{log.dir}/{f}") for f in files) > 0


# --- lookup by time


@pytest.fixture
def timed(storage: StorageHarness) -> UnifiedLog:
    log = storage.open_log(storage.config(index_interval_bytes=0))
    fill(log, 9, per_segment=3)
    return log


@pytest.mark.parametrize(
    ("timestamp", "offset"),
    [(0, 0), (TIMESTAMP, 0), (TIMESTAMP + 1, 1), (TIMESTAMP + 4000, 4), (TIMESTAMP + 8000, 8)],
)
def test_first_record_not_older_is_found(timed: UnifiedLog, timestamp: int, offset: int) -> None:
    found = timed.fetch_offset_by_timestamp(timestamp)

    assert found == (TIMESTAMP + offset * 1000, offset, 0)


def test_no_record_is_younger_than_the_last(timed: UnifiedLog) -> None:
    assert timed.fetch_offset_by_timestamp(TIMESTAMP + 8001) is None


def test_lookup_by_time_respects_the_log_start(timed: UnifiedLog) -> None:
    timed.maybe_increment_log_start_offset(5, "a test")

    assert timed.fetch_offset_by_timestamp(0) == (TIMESTAMP + 5000, 5, 0)


def test_special_timestamps(timed: UnifiedLog) -> None:
    timed.maybe_increment_log_start_offset(1, "a test")

    assert timed.fetch_offset_by_timestamp(EARLIEST_TIMESTAMP) == (-1, 1, 0)
    assert timed.fetch_offset_by_timestamp(EARLIEST_LOCAL_TIMESTAMP) == (-1, 1, 0)
    assert timed.fetch_offset_by_timestamp(LATEST_TIMESTAMP) == (-1, 9, 0)
    assert timed.fetch_offset_by_timestamp(MAX_TIMESTAMP) == (TIMESTAMP + 8000, 8, 0)
    assert timed.fetch_offset_by_timestamp(LATEST_TIERED_TIMESTAMP) == (-1, -1, -1)


def test_max_timestamp_is_that_of_the_record_not_its_batch(storage: StorageHarness) -> None:
    log = storage.open_log()
    append(log, "old")
    log.append_as_leader(records("a", "b", "c", timestamp=TIMESTAMP + 500), 2)
    append(log, "older", timestamp=1, epoch=2)

    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) == (TIMESTAMP + 500, 1, 2)


def test_empty_log_has_bounds_but_no_timestamps(storage: StorageHarness) -> None:
    log = storage.open_log()

    assert log.fetch_offset_by_timestamp(EARLIEST_TIMESTAMP) == (-1, 0, None)
    assert log.fetch_offset_by_timestamp(LATEST_TIMESTAMP) == (-1, 0, None)
    assert log.fetch_offset_by_timestamp(MAX_TIMESTAMP) is None
    assert log.fetch_offset_by_timestamp(0) is None


def test_legacy_lookup_lists_segment_starts(timed: UnifiedLog) -> None:
    assert timed.legacy_fetch_offsets_before(LATEST_TIMESTAMP, 10) == [9, 6, 3, 0]
    assert timed.legacy_fetch_offsets_before(LATEST_TIMESTAMP, 2) == [9, 6]
    assert timed.legacy_fetch_offsets_before(EARLIEST_TIMESTAMP, 10) == [0]
    assert timed.legacy_fetch_offsets_before(1, 10) == []


@pytest.mark.parametrize(
    ("epoch", "found"), [(0, (1, 0)), (1, (1, 0)), (2, (2, 2)), (3, (2, 2)), (4, (3, 4)), (5, None)]
)
def test_end_offset_of_an_epoch(
    storage: StorageHarness, epoch: int, found: tuple[int, int] | None
) -> None:
    log = storage.open_log()
    for written in (0, 2, 4):
        append(log, "x", epoch=written)

    assert log.end_offset_for_epoch(epoch) == found
