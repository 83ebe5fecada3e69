"""Leader epochs: assignment, end offsets, truncation, the file."""

from pathlib import Path

import pytest

from kafkapy.common.errors import KafkaStorageError
from kafkapy.common.types import TopicPartition
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.leader_epoch_checkpoint_file import LeaderEpochCheckpointFile
from kafkapy.storage.leader_epoch_file_cache import LeaderEpochFileCache
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from tests.helpers.mock_time import MockTime


def open_cache(path: Path, time: MockTime) -> LeaderEpochFileCache:
    checkpoint = LeaderEpochCheckpointFile(
        str(path), file_system=OsFileSystem(), log_dir_failure_channel=LogDirFailureChannel()
    )
    return LeaderEpochFileCache(TopicPartition("t", 0), checkpoint, time.scheduler)


@pytest.fixture
def cache(tmp_path: Path, time: MockTime) -> LeaderEpochFileCache:
    made = open_cache(tmp_path, time)
    for epoch, offset in ((2, 10), (4, 20), (7, 30)):
        made.assign(epoch, offset)
    return made


def test_file_format_is_kafkas(cache: LeaderEpochFileCache, tmp_path: Path) -> None:
    text = (tmp_path / "leader-epoch-checkpoint").read_text()

    assert text == "0\n3\n2 10\n4 20\n7 30\n"
    assert not cache.is_empty


def test_epochs_survive_reopening(
    cache: LeaderEpochFileCache, tmp_path: Path, time: MockTime
) -> None:
    assert open_cache(tmp_path, time).epoch_entries == cache.epoch_entries


@pytest.mark.parametrize(
    ("epoch", "offset", "entries"),
    [
        (7, 35, ((2, 10), (4, 20), (7, 30))),
        (7, 25, ((2, 10), (4, 20), (7, 25))),
        (8, 30, ((2, 10), (4, 20), (8, 30))),
        (8, 40, ((2, 10), (4, 20), (7, 30), (8, 40))),
        (8, 15, ((2, 10), (8, 15))),
        (5, 50, ((2, 10), (4, 20), (5, 50))),
        (1, 5, ((1, 5),)),
    ],
)
def test_assignment_keeps_both_columns_ascending(
    cache: LeaderEpochFileCache, epoch: int, offset: int, entries: tuple[tuple[int, int], ...]
) -> None:
    cache.assign(epoch, offset)

    assert cache.epoch_entries == entries


@pytest.mark.parametrize(("epoch", "offset"), [(-1, 5), (9, -1)])
def test_negative_values_are_refused(cache: LeaderEpochFileCache, epoch: int, offset: int) -> None:
    with pytest.raises(ValueError, match="invalid"):
        cache.assign(epoch, offset)


@pytest.mark.parametrize(
    ("requested", "found"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),
        (2, (2, 20)),
        (3, (2, 20)),
        (4, (4, 30)),
        (7, (7, 99)),
        (8, (-1, -1)),
    ],
)
def test_end_offset(cache: LeaderEpochFileCache, requested: int, found: tuple[int, int]) -> None:
    assert cache.end_offset_for(requested, 99) == found


@pytest.mark.parametrize(("offset", "epoch"), [(9, None), (10, 2), (19, 2), (20, 4), (99, 7)])
def test_epoch_of_an_offset(cache: LeaderEpochFileCache, offset: int, epoch: int | None) -> None:
    assert cache.epoch_for_offset(offset) == epoch


@pytest.mark.parametrize(
    ("offset", "entries"),
    [(31, ((2, 10), (4, 20), (7, 30))), (30, ((2, 10), (4, 20))), (11, ((2, 10),)), (10, ())],
)
def test_truncation_from_the_end(
    cache: LeaderEpochFileCache,
    tmp_path: Path,
    time: MockTime,
    offset: int,
    entries: tuple[tuple[int, int], ...],
) -> None:
    cache.truncate_from_end_async_flush(offset)

    assert cache.epoch_entries == entries
    assert open_cache(tmp_path, time).epoch_entries == entries


@pytest.mark.parametrize(
    ("offset", "entries"),
    [
        (5, ((2, 10), (4, 20), (7, 30))),
        (10, ((2, 10), (4, 20), (7, 30))),
        (15, ((2, 15), (4, 20), (7, 30))),
        (20, ((4, 20), (7, 30))),
        (99, ((7, 99),)),
    ],
)
def test_truncation_from_the_start_keeps_the_epoch_it_falls_into(
    cache: LeaderEpochFileCache,
    tmp_path: Path,
    time: MockTime,
    offset: int,
    entries: tuple[tuple[int, int], ...],
) -> None:
    cache.truncate_from_start_async_flush(offset)

    assert cache.epoch_entries == entries
    assert open_cache(tmp_path, time).epoch_entries == entries


def test_neighbours(cache: LeaderEpochFileCache) -> None:
    assert (cache.latest_epoch, cache.previous_epoch) == (7, 4)
    assert cache.earliest_entry == (2, 10)
    assert cache.latest_entry == (7, 30)
    cache.clear_and_flush()
    assert (cache.latest_epoch, cache.previous_epoch, cache.latest_entry) == (None, None, None)


@pytest.mark.parametrize("text", ["1\n0\n", "0\n2\n1 1\n", "0\n1\nx y\n", "\n", "0\n-1\n", "zero"])
def test_malformed_file_takes_the_directory_offline(
    tmp_path: Path, time: MockTime, text: str
) -> None:
    partition = tmp_path / "topic-0"
    partition.mkdir()
    (partition / "leader-epoch-checkpoint").write_text(text)
    failures = LogDirFailureChannel()
    checkpoint = LeaderEpochCheckpointFile(
        str(partition), file_system=OsFileSystem(), log_dir_failure_channel=failures
    )

    with pytest.raises(KafkaStorageError):
        LeaderEpochFileCache(TopicPartition("t", 0), checkpoint, time.scheduler)

    assert failures.take_next_offline_log_dir(0) == str(tmp_path)
