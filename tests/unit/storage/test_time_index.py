"""Time index: what is found, and what the file looks like."""

from pathlib import Path

import pytest

from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.storage_errors import CorruptIndexError, InvalidOffsetError
from kafkapy.storage.time_index import NO_TIMESTAMP, TimeIndex

BASE = 345


def open_index(path: Path, max_size: int = 10 * 12) -> TimeIndex:
    return TimeIndex(
        str(path / "x.timeindex"), BASE, max_index_size=max_size, file_system=OsFileSystem()
    )


def filled(path: Path, count: int) -> TimeIndex:
    index = open_index(path)
    for i in range(1, count + 1):
        index.maybe_append(i * 10, BASE + i * 10)
    return index


def test_empty_index_knows_no_timestamp(tmp_path: Path) -> None:
    index = open_index(tmp_path)

    assert index.lookup(100) == (NO_TIMESTAMP, BASE)
    assert index.last_entry == (NO_TIMESTAMP, BASE)


@pytest.mark.parametrize(
    ("target", "found"),
    [(9, (-1, 345)), (10, (10, 355)), (19, (10, 355)), (50, (50, 395)), (99, (50, 395))],
)
def test_lookup_finds_the_last_entry_not_after(
    tmp_path: Path, target: int, found: tuple[int, int]
) -> None:
    assert filled(tmp_path, 5).lookup(target) == found


def test_entry_layout_is_timestamp_then_relative_offset(tmp_path: Path) -> None:
    filled(tmp_path, 1).close()

    assert (tmp_path / "x.timeindex").read_bytes().hex() == "000000000000000a0000000a"


def test_timestamp_that_is_not_younger_adds_nothing(tmp_path: Path) -> None:
    index = filled(tmp_path, 3)

    index.maybe_append(30, BASE + 31)

    assert index.entries == 3


def test_offsets_and_timestamps_must_not_go_back(tmp_path: Path) -> None:
    index = filled(tmp_path, 3)

    with pytest.raises(InvalidOffsetError):
        index.maybe_append(40, BASE + 29)
    with pytest.raises(ValueError, match="timestamp"):
        index.maybe_append(29, BASE + 40)


def test_last_slot_is_kept_for_closing_the_segment(tmp_path: Path) -> None:
    index = filled(tmp_path, 9)

    assert index.is_full
    with pytest.raises(ValueError, match="full"):
        index.maybe_append(100, BASE + 100)
    index.maybe_append(100, BASE + 100, skip_full_check=True)
    assert index.last_entry == (100, BASE + 100)


def test_closing_entry_fits_a_trimmed_file_too(tmp_path: Path) -> None:
    filled(tmp_path, 2).close()
    index = open_index(tmp_path)

    index.maybe_append(77, BASE + 77, skip_full_check=True)
    index.close()

    assert open_index(tmp_path).last_entry == (77, BASE + 77)
    assert (tmp_path / "x.timeindex").stat().st_size == 36


@pytest.mark.parametrize(("offset", "left"), [(BASE, 0), (355, 0), (356, 1), (375, 2), (999, 5)])
def test_truncate_to_goes_by_offset(tmp_path: Path, offset: int, left: int) -> None:
    index = filled(tmp_path, 5)

    index.truncate_to(offset)

    assert index.entries == left
    assert index.last_entry == ((left * 10, BASE + left * 10) if left else (NO_TIMESTAMP, BASE))


@pytest.mark.parametrize("content", [b"\0" * 24, b"12345", b"\xff" * 12])
def test_garbage_fails_the_sanity_check(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.timeindex").write_bytes(content)

    with pytest.raises(CorruptIndexError):
        open_index(tmp_path).sanity_check()


@pytest.mark.parametrize("max_size", [4, 8, 11])
def test_index_that_is_too_small_for_an_entry_has_room_for_one(
    tmp_path: Path, max_size: int
) -> None:
    index = open_index(tmp_path, max_size)

    index.maybe_append(10, BASE + 10, skip_full_check=True)

    assert index.length == 12
    assert index.last_entry == (10, BASE + 10)
