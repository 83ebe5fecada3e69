"""Compaction on disk: groups of segments, files that change places, crashes in between."""

import errno
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest

from kafkapy.common.errors import KafkaError
from kafkapy.storage.cleaner import group_segments_by_size
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.testing.faulty_file_system import DiskFault
from tests.helpers.crashing_fs import CrashingFileSystem
from tests.helpers.mock_time import MockTime
from tests.helpers.records import record, records
from tests.unit.storage.cleaning import (
    TransactionalProducer,
    clean,
    compacted_log,
    pairs_of,
    put,
    put_each,
    roll_and_clean,
)
from tests.unit.storage.harness import SMALL_INDEX, StorageHarness, read_all

INT_MAX = 2**31 - 1


def file_names(log: UnifiedLog, suffix: str = "") -> list[str]:
    return sorted(name for name in os.listdir(log.dir) if name.endswith(suffix))


def group(log: UnifiedLog, **limits: int) -> list[list[int]]:
    """The base offsets of each group of segments, the active one left out."""
    segments = log.segments[:-1]
    groups = group_segments_by_size(
        segments,
        max_size=limits.get("max_size", 1 << 30),
        max_index_size=limits.get("max_index_size", 1 << 30),
        first_uncleanable_offset=limits.get("end", log.active_segment.base_offset),
    )
    assert [segment for found in groups for segment in found] == list(segments)
    return [[segment.base_offset for segment in found] for found in groups]


def log_with_segments(storage: StorageHarness, time: MockTime, count: int) -> UnifiedLog:
    log = compacted_log(storage, index_interval_bytes=1)
    for i in range(count):
        put_each(log, time, [(f"a{i}", "x"), (f"b{i}", "x")])
        log.roll()
    return log


def test_small_neighbours_become_one_segment(storage: StorageHarness, time: MockTime) -> None:
    log = log_with_segments(storage, time, 4)
    size = log.segments[0].size

    assert group(log) == [[0, 2, 4, 6]]
    assert group(log, max_size=2 * size) == [[0, 2], [4, 6]]
    assert group(log, max_size=3 * size) == [[0, 2, 4], [6]]
    assert group(log, max_size=1) == [[0], [2], [4], [6]]
    index_size = max(log.segments[0].offset_index.size_in_bytes, 12)
    assert group(log, max_index_size=2 * index_size) == [[0, 2], [4, 6]]


def test_a_group_spans_no_more_offsets_than_an_index_can_tell(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    for start in (0, INT_MAX - 1, INT_MAX + 5, 2 * INT_MAX):
        log.roll(start)
        batch = put_at(log, time, start)
        assert batch == start
    log.roll()

    assert group(log) == [[0], [INT_MAX - 1, INT_MAX + 5], [2 * INT_MAX]]


def put_at(log: UnifiedLog, time: MockTime, offset: int) -> int:
    """As a follower, which takes offsets as they are."""
    batch = records(record("v", key=str(offset), timestamp=time.milliseconds()), offset=offset)
    log.append_as_follower(batch)
    return offset


def test_an_empty_segment_joins_its_neighbour_however_far(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put_at(log, time, 0)
    log.roll(3 * INT_MAX)
    log.roll(4 * INT_MAX)
    assert [segment.size > 0 for segment in log.segments] == [True, False, False]

    assert group(log) == [[0, 3 * INT_MAX]]


def test_the_compacted_segment_has_the_first_ones_name_and_all_indexes(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage, index_interval_bytes=50)
    for i in range(6):
        put_each(log, time, [(f"k{j}", f"v{i}") for j in range(10)])
        log.roll()
    time.sleep(1)

    clean(log, time)

    assert [segment.base_offset for segment in log.segments] == [0, 60]
    cleaned = log.segments[0]
    for name in (".log", ".index", ".timeindex"):
        assert f"{0:020d}{name}" in file_names(log)
    assert cleaned.offset_index.entries > 3
    assert cleaned.time_index.last_entry.timestamp == time.milliseconds() - 1
    cleaned.sanity_check()
    # Every offset is found, by way of the index, also those in the gap before the first record.
    for offset in range(60):
        assert read_all(log, offset)[0].offset == max(offset, 50)


def test_each_index_entry_is_of_the_batch_at_its_position(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage, index_interval_bytes=200)
    put_each(log, time, [(f"k{i % 40}", str(i)) for i in range(200)])
    roll_and_clean(log, time)
    index = log.segments[0].offset_index

    entries = [index.entry(n) for n in range(index.entries)]

    assert len(entries) > 5
    positions = {b.position: b.last_offset for b in log.segments[0].log.batches()}
    assert [positions[entry.position] for entry in entries] == [e.offset for e in entries]


@pytest.mark.parametrize(
    "changed", [{"index_interval_bytes": 0}, {"index_interval_bytes": 0, "segment_index_bytes": 64}]
)
def test_a_segment_may_need_more_index_entries_than_there_is_room_for(
    storage: StorageHarness, time: MockTime, changed: dict[str, int]
) -> None:
    log = compacted_log(storage, segment_index_bytes=120)
    pairs = [(str(i), str(i)) for i in range(50)]
    put_each(log, time, pairs)
    log.update_config(replace(log.config, **changed))

    roll_and_clean(log, time)

    assert pairs_of(log) == pairs
    check_index(log.segments[0])


def test_the_old_files_go_after_the_delay(storage: StorageHarness, time: MockTime) -> None:
    log = log_with_segments(storage, time, 3)
    clean(log, time)

    assert len(file_names(log, ".deleted")) >= 9
    time.sleep(log.config.file_delete_delay_ms)

    assert file_names(log, ".deleted") == []
    assert file_names(log, ".log") == [f"{0:020d}.log", f"{6:020d}.log"]


def test_snapshots_of_segments_that_are_no_more_go_too(
    storage: StorageHarness, time: MockTime
) -> None:
    log = log_with_segments(storage, time, 3)
    assert len(file_names(log, ".snapshot")) == 3

    clean(log, time)

    assert file_names(log, ".snapshot") == [f"{6:020d}.snapshot"]


def test_a_reader_keeps_the_slice_it_has(storage: StorageHarness, time: MockTime) -> None:
    log = log_with_segments(storage, time, 2)
    slice_ = log.read(0, 1 << 20, FetchIsolation.LOG_END, min_one_message=True).records
    put_each(log, time, [("a0", "y"), ("b0", "y")])
    roll_and_clean(log, time)
    time.sleep(log.config.file_delete_delay_ms)

    assert [record.key for record in slice_.records()] == [b"a0", b"b0"]


def test_segments_stay_within_segment_bytes(storage: StorageHarness, time: MockTime) -> None:
    log = compacted_log(storage, segment_bytes=1000)
    put_each(log, time, [(f"k{i}", "x" * 50) for i in range(60)])
    log.roll()
    before = log.number_of_segments

    clean(log, time)
    for _ in range(3):
        clean(log, time)

    assert all(segment.size <= 1000 for segment in log.segments)
    assert log.number_of_segments <= before
    assert len(pairs_of(log)) == 60


def test_a_log_of_obsolete_records_alone_becomes_an_empty_segment(
    storage: StorageHarness, time: MockTime
) -> None:
    log = compacted_log(storage)
    put_each(log, time, [("a", None)])
    log.roll()
    clean(log, time)
    time.sleep(log.config.delete_retention_ms)
    put_each(log, time, [("b", "1")])
    clean(log, time)

    assert [segment.size == 0 for segment in log.segments] == [True, False]
    assert [record.offset for record in read_all(log, 0)] == [1]
    log.flush()
    log.close()
    log = storage.open_log(log.config, recovery_point=2)
    assert [record.offset for record in read_all(log, 0)] == [1]


def test_modification_time_is_that_of_the_youngest_original(
    storage: StorageHarness, time: MockTime
) -> None:
    log = log_with_segments(storage, time, 2)
    log.segments[0].last_modified_ms = 1_000_000
    log.segments[1].last_modified_ms = 2_000_000

    clean(log, time)

    assert log.segments[0].last_modified_ms == 2_000_000


@pytest.mark.parametrize("preallocate", [False, True])
def test_preallocated_files_shrink_to_what_they_hold(
    storage: StorageHarness, time: MockTime, preallocate: bool
) -> None:
    log = compacted_log(storage, preallocate=preallocate, segment_bytes=100_000)
    put_each(log, time, [("a", "1"), ("a", "2")])

    roll_and_clean(log, time)

    assert os.path.getsize(log.segments[0].log.path) == log.segments[0].size < 100
    assert os.path.getsize(log.segments[0].offset_index.path) < SMALL_INDEX


# --- crashes


class DyingFileSystem(CrashingFileSystem):
    """From some operation on nothing works any more, as if the process had been killed there."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0
        self.dies_at: int | None = None
        self.last_operation = ""

    def check(self, operation: str, path: str) -> DiskFault | None:
        if self.dies_at is not None:
            # Reading leaves the disk as the operation before it did.
            self.seen += operation != "read"
            if self.seen >= self.dies_at:
                self.last_operation = f"{operation} of {path}"
                raise OSError(errno.EIO, "killed", path)
        return super().check(operation, path)


def fill_for_crash(log: UnifiedLog, time: MockTime) -> None:
    """Three small segments and their last values, with an aborted transaction in the first."""
    producer = TransactionalProducer(log, time, 9)
    put(log, time, ("a", "1"), ("b", "1"))
    producer.put(("a", "aborted"))
    producer.abort()
    log.roll()
    put(log, time, ("b", "2"), ("c", "1"))
    log.roll()
    put(log, time, ("d", "1"), ("c", "2"))
    log.roll()
    put(log, time, ("e", "1"))
    log.flush()


SURVIVING = [("a", "1"), ("b", "2"), ("d", "1"), ("c", "2"), ("e", "1")]


@pytest.mark.parametrize("power_loss", [False, True])
def test_a_crash_at_any_step_loses_nothing_and_the_next_round_ends_well(
    tmp_path: Path, power_loss: bool
) -> None:
    dies_at = 0
    steps_with_leftovers = 0
    while True:
        dies_at += 1
        time = MockTime()
        file_system = DyingFileSystem()
        storage = StorageHarness(tmp_path / str(dies_at), file_system, time)
        log = compacted_log(storage)
        fill_for_crash(log, time)
        recovery_point = log.recovery_point
        file_system.dies_at = dies_at
        try:
            clean(log, time)
        except (OSError, KafkaError):
            is_over = False
        else:
            is_over = True
        file_system.dies_at = None
        if power_loss:
            file_system.crash(random.Random(dies_at))
        leftovers = file_names(log, ".swap") + file_names(log, ".cleaned")
        steps_with_leftovers += bool(leftovers)

        reopened = StorageHarness(tmp_path / str(dies_at), time=MockTime()).open_log(
            log.config, clean=False, recovery_point=recovery_point
        )
        reopened.update_high_watermark(reopened.log_end_offset)

        context = f"killed at operation {dies_at}: {file_system.last_operation}, {leftovers}"
        assert file_names(reopened, ".swap") + file_names(reopened, ".cleaned") == [], context
        assert reopened.log_end_offset == 9, context
        offsets = [record.offset for record in read_all(reopened)]
        assert offsets == sorted(set(offsets)), context
        latest = {k: v for k, v in pairs_of(reopened) if v != "aborted"}
        assert latest == dict(SURVIVING), context
        clean(reopened, time)
        assert pairs_of(reopened) == SURVIVING, context
        check_index(reopened.segments[0])
        if is_over:
            break
    assert dies_at > 25
    assert steps_with_leftovers > 10


def check_index(segment: LogSegment) -> None:
    segment.sanity_check()
    for batch in segment.log.batches():
        found = segment.translate_offset(batch.last_offset)
        assert found is not None and found.position == batch.position


def test_a_swap_of_nothing_takes_the_old_indexes_away(
    storage: StorageHarness, time: MockTime
) -> None:
    """An index of aborted transactions without their markers would hide what comes after."""
    log = compacted_log(storage)
    producer = TransactionalProducer(log, time, 9)
    producer.put(("a", "1"))
    producer.abort()
    log.roll()
    log.flush()
    put(log, time, ("b", "1"))
    log.close()
    assert file_names(log, ".txnindex")
    for suffix in (".log", ".index", ".timeindex"):
        Path(log.dir, f"{0:020d}{suffix}.swap").write_bytes(b"")

    log = storage.open_log(log.config, recovery_point=log.log_end_offset)

    assert log.segments[0].size == 0
    assert log.collect_aborted_transactions(0, 10) == []
    assert pairs_of(log) == [("b", "1")]


def test_an_error_of_the_disk_takes_the_directory_offline(tmp_path: Path, time: MockTime) -> None:
    file_system = CrashingFileSystem()
    storage = StorageHarness(tmp_path, file_system, time)
    log = log_with_segments(storage, time, 2)
    file_system.fail("rename", path_contains=".cleaned")

    with pytest.raises(KafkaError):
        clean(log, time)

    assert storage.failures.has_offline_log_dir(str(tmp_path))
