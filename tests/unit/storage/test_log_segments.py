"""LogSegments: order and ranges."""

import threading
from pathlib import Path

import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments
from tests.helpers.mock_time import MockTime


@pytest.fixture
def segments(tmp_path: Path, time: MockTime) -> LogSegments:
    made = LogSegments(TopicPartition("topic", 0))
    for base in (10, 20, 30):
        made.add(open_segment(tmp_path, time, base))
    return made


def open_segment(path: Path, time: MockTime, base: int) -> LogSegment:
    return LogSegment.open(str(path), base, LogConfig(), file_system=OsFileSystem(), time=time)


def base(segment: LogSegment | None) -> int | None:
    return None if segment is None else segment.base_offset


@pytest.mark.parametrize(
    ("offset", "floor", "lower", "higher"),
    [
        (9, None, None, 10),
        (10, 10, None, 20),
        (11, 10, 10, 20),
        (20, 20, 10, 30),
        (30, 30, 20, None),
        (99, 30, 30, None),
    ],
)
def test_neighbours(
    segments: LogSegments, offset: int, floor: int | None, lower: int | None, higher: int | None
) -> None:
    assert base(segments.floor_segment(offset)) == floor
    assert base(segments.lower_segment(offset)) == lower
    assert base(segments.higher_segment(offset)) == higher


@pytest.mark.parametrize(
    ("start", "end", "found"),
    [
        (0, None, [10, 20, 30]),
        (15, None, [10, 20, 30]),
        (20, 30, [20]),
        (20, 31, [20, 30]),
        (5, 5, []),
    ],
)
def test_range_begins_with_the_segment_that_holds_it(
    segments: LogSegments, start: int, end: int | None, found: list[int]
) -> None:
    assert [s.base_offset for s in segments.values_between(start, end)] == found


def test_first_last_and_active_follow_changes(segments: LogSegments) -> None:
    segments.remove(30)
    segments.remove(10)

    assert base(segments.first_segment) == base(segments.active_segment) == 20
    segments.clear()
    assert segments.is_empty
    with pytest.raises(LookupError):
        _ = segments.active_segment


def test_readers_beside_a_writer_see_whole_states(
    segments: LogSegments, tmp_path: Path, time: MockTime
) -> None:
    new = [open_segment(tmp_path, time, 40 + i) for i in range(20)]
    stop = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not stop.is_set():
                assert base(segments.floor_segment(25)) == 20
                assert segments.values()[0].base_offset == 10
        except BaseException as e:
            failures.append(e)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(20):
        for segment in new:
            segments.add(segment)
        for segment in new:
            segments.remove(segment.base_offset)
    stop.set()
    for reader in readers:
        reader.join()

    assert failures == []
