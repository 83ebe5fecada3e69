"""LogSegment: one file with its indexes."""

import os
from pathlib import Path

import pytest

from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.producer_state_manager import ProducerStateManager
from kafkapy.storage.producer_state_manager_config import ProducerStateManagerConfig
from kafkapy.storage.storage_errors import LogSegmentOffsetOverflowError
from tests.helpers.mock_time import MockTime
from tests.unit.storage.harness import TIMESTAMP, joined, records

BASE = 40


@pytest.fixture
def segment(tmp_path: Path, time: MockTime) -> LogSegment:
    return open_segment(tmp_path, time)


def open_segment(path: Path, time: MockTime, *, interval: int = 0, base: int = BASE) -> LogSegment:
    config = LogConfig(segment_index_bytes=1200, index_interval_bytes=interval)
    return LogSegment.open(str(path), base, config, file_system=OsFileSystem(), time=time)


def put(segment: LogSegment, offset: int, *values: str, timestamp: int = TIMESTAMP) -> None:
    batch = records(*values, offset=offset, timestamp=timestamp, leader_epoch=0)
    last = offset + len(values) - 1
    segment.append(
        last,
        largest_timestamp=timestamp,
        shallow_offset_of_max_timestamp=last,
        records=batch,
    )


def read(segment: LogSegment, offset: int, max_size: int = 1 << 20) -> list[int] | None:
    info = segment.read(offset, max_size, max_position=segment.size, min_one_message=True)
    if info is None:
        return None
    return [record.offset for record in info.records.records()]


def test_empty_segment_has_nothing_to_read(segment: LogSegment) -> None:
    assert read(segment, BASE) is None
    assert segment.read_next_offset() == BASE
    assert segment.first_batch_timestamp is None


def test_read_begins_with_the_batch_that_holds_the_offset(segment: LogSegment) -> None:
    put(segment, 50, "a", "b", "c")
    put(segment, 60, "d", "e")

    assert read(segment, 45) == [50, 51, 52, 60, 61]
    assert read(segment, 52) == [50, 51, 52, 60, 61]
    assert read(segment, 53) == [60, 61]
    assert read(segment, 62) is None
    assert read(segment, 52, max_size=1) == [50, 51, 52]


@pytest.mark.parametrize("offset", [BASE - 1, BASE + (1 << 31)])
def test_offset_that_does_not_fit_is_refused(segment: LogSegment, offset: int) -> None:
    with pytest.raises(LogSegmentOffsetOverflowError):
        put(segment, offset, "x")

    assert segment.size == 0


def test_index_has_an_entry_every_interval(tmp_path: Path, time: MockTime) -> None:
    segment = open_segment(tmp_path, time, interval=200)
    for i in range(20):
        put(segment, BASE + i, "x", timestamp=TIMESTAMP + i)

    positions = [
        segment.offset_index.entry(i).position for i in range(segment.offset_index.entries)
    ]
    size = records("x").size_in_bytes
    step = -(-201 // size) * size
    assert positions == list(range(step, 20 * size, step))
    assert segment.time_index.entries == len(positions)


def test_read_next_offset_looks_behind_the_last_index_entry(tmp_path: Path, time: MockTime) -> None:
    segment = open_segment(tmp_path, time, interval=150)
    for i in range(7):
        put(segment, BASE + i * 3, "a", "b")

    assert segment.read_next_offset() == BASE + 20


@pytest.mark.parametrize("target", range(BASE, BASE + 11))
def test_truncation_keeps_what_is_below(tmp_path: Path, time: MockTime, target: int) -> None:
    segment = open_segment(tmp_path, time)
    for i in range(0, 10, 2):
        put(segment, BASE + i, "a", "b", timestamp=TIMESTAMP + i)

    segment.truncate_to(target)

    kept = [offset for offset in range(BASE, BASE + 10) if offset < target - (target % 2)]
    assert (read(segment, BASE) or []) == kept
    assert segment.max_timestamp_so_far == (TIMESTAMP + kept[-1] - BASE - 1 if kept else -1)
    put(segment, target, "next", timestamp=TIMESTAMP + 99)
    assert read(segment, target) == [target]


def test_emptied_segment_forgets_its_age(tmp_path: Path, time: MockTime) -> None:
    segment = open_segment(tmp_path, time)
    put(segment, BASE, "a", timestamp=1)
    time.sleep(5000)

    segment.truncate_to(BASE)

    assert not segment.should_roll(
        max_segment_ms=1000,
        max_segment_bytes=1 << 20,
        messages_size=10,
        max_timestamp=TIMESTAMP,
        max_offset=BASE,
    )


def test_timestamp_lookup_within_a_segment(segment: LogSegment) -> None:
    for i in range(10):
        put(segment, BASE + i, "x", timestamp=TIMESTAMP + i * 10)

    found = segment.find_offset_by_timestamp(TIMESTAMP + 41, BASE)
    from_later = segment.find_offset_by_timestamp(TIMESTAMP, BASE + 7)

    assert found is not None and (found.timestamp, found.offset) == (TIMESTAMP + 50, BASE + 5)
    assert from_later is not None and from_later.offset == BASE + 7
    assert segment.find_offset_by_timestamp(TIMESTAMP + 91, BASE) is None


def test_largest_timestamp_is_found_again_after_reopening(tmp_path: Path, time: MockTime) -> None:
    segment = open_segment(tmp_path, time, interval=100)
    for i, timestamp in enumerate((5, 9, 3, 7, 1)):
        put(segment, BASE + i, "x", timestamp=TIMESTAMP + timestamp)
    segment.close()

    segment = open_segment(tmp_path, time)

    assert segment.max_timestamp_and_offset_so_far == (TIMESTAMP + 9, BASE + 1)
    assert segment.largest_timestamp == TIMESTAMP + 9
    assert segment.first_batch_timestamp == TIMESTAMP + 5


def test_files_follow_a_change_of_suffix(tmp_path: Path, segment: LogSegment) -> None:
    put(segment, BASE, "a")
    put(segment, BASE + 1, "b")

    segment.change_file_suffixes("", ".deleted")

    assert sorted(os.listdir(tmp_path)) == [
        f"{BASE:020d}.index.deleted",
        f"{BASE:020d}.log.deleted",
        f"{BASE:020d}.timeindex.deleted",
    ]
    assert read(segment, BASE) == [BASE, BASE + 1]
    segment.delete_if_exists()
    assert os.listdir(tmp_path) == []


def recover(segment: LogSegment, path: Path, **options: object) -> int:
    manager = ProducerStateManager(
        TopicPartition("t", 0),
        str(path),
        config=ProducerStateManagerConfig(1000),
        file_system=OsFileSystem(),
    )
    return segment.recover(manager, **options)  # type: ignore[arg-type]


def write_file(path: Path, *batches: MemoryRecords) -> None:
    (path / f"{BASE:020d}.log").write_bytes(bytes(joined(*batches).buffer))


@pytest.mark.parametrize(
    ("offsets", "next_base", "may_have_gaps", "kept"),
    [
        ([40, 41, 42], None, False, 3),
        # A batch that comes again, or from before the segment.
        ([40, 41, 41], None, True, 2),
        ([39, 40], None, True, 0),
        # A gap that the batch after it contradicts: the wrong offset is the one before.
        ([40, 45, 42, 43], None, True, 1),
        # A gap that nothing contradicts, as compaction leaves it.
        ([40, 45, 46], None, True, 3),
        ([45, 46], None, False, 2),
        # A gap before the last batch is believed only where there can be one.
        ([40, 45], None, True, 2),
        ([40, 45], None, False, 1),
        ([40, 45], 46, False, 2),
        ([40, 45], 45, False, 1),
        ([40, 41], 41, False, 1),
        ([40, 40 + (1 << 31)], None, True, 1),
    ],
)
def test_recovery_cuts_at_the_first_impossible_offset(
    tmp_path: Path,
    time: MockTime,
    offsets: list[int],
    next_base: int | None,
    may_have_gaps: bool,
    kept: int,
) -> None:
    write_file(tmp_path, *(records("x", offset=offset, leader_epoch=0) for offset in offsets))
    segment = open_segment(tmp_path, time)
    size = segment.size

    truncated = recover(segment, tmp_path, next_base_offset=next_base, may_have_gaps=may_have_gaps)

    assert size - truncated == segment.size == kept * (size // len(offsets))
    assert (read(segment, 0) or []) == offsets[:kept]
