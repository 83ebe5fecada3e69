"""Offset index: what is found, and what the file looks like."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.errors import KafkaStorageError
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.offset_index import OffsetIndex, OffsetPosition
from kafkapy.storage.storage_errors import (
    CorruptIndexError,
    InvalidOffsetError,
    LogSegmentOffsetOverflowError,
)

BASE = 45


def open_index(path: Path, *, max_size: int = 30 * 8, base: int = BASE) -> OffsetIndex:
    return OffsetIndex(
        str(path / "x.index"), base, max_index_size=max_size, file_system=OsFileSystem()
    )


def filled(path: Path, count: int, **options: int) -> OffsetIndex:
    index = open_index(path, **options)
    for i in range(1, count + 1):
        index.append(BASE + i * 10, i * 100)
    return index


def test_empty_index_points_to_the_start_of_the_segment(tmp_path: Path) -> None:
    index = open_index(tmp_path)

    assert index.lookup(BASE + 1000) == OffsetPosition(BASE, 0)
    assert (index.entries, index.last_offset, index.is_full) == (0, BASE, False)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (44, (45, 0)),
        (54, (45, 0)),
        (55, (55, 100)),
        (64, (55, 100)),
        (65, (65, 200)),
        (999, (95, 500)),
    ],
)
def test_lookup_finds_the_last_entry_at_or_below(
    tmp_path: Path, target: int, found: tuple[int, int]
) -> None:
    assert filled(tmp_path, 5).lookup(target) == found


def test_file_is_preallocated_then_trimmed_on_close(tmp_path: Path) -> None:
    index = filled(tmp_path, 3)
    size_while_open = (tmp_path / "x.index").stat().st_size

    index.close()

    assert size_while_open == 240
    assert (tmp_path / "x.index").read_bytes() == bytes.fromhex(
        "0000000a000000640000001400000 0c80000001e0000012c".replace(" ", "")
    )


def test_trimmed_index_reopens_full_and_grows_again(tmp_path: Path) -> None:
    filled(tmp_path, 3).close()

    index = open_index(tmp_path)
    was_full = index.is_full
    index.resize(240)
    index.append(BASE + 100, 1000)

    assert was_full
    assert index.entries == 4
    assert index.lookup(BASE + 100) == (BASE + 100, 1000)


def test_entries_must_increase(tmp_path: Path) -> None:
    index = filled(tmp_path, 3)

    with pytest.raises(InvalidOffsetError):
        index.append(BASE + 30, 400)


def test_full_index_refuses_entries(tmp_path: Path) -> None:
    index = filled(tmp_path, 30)

    assert index.is_full
    with pytest.raises(ValueError, match="full"):
        index.append(BASE + 1000, 4000)


@pytest.mark.parametrize("offset", [BASE - 1, BASE + (1 << 31)])
def test_offset_that_does_not_fit_is_refused(tmp_path: Path, offset: int) -> None:
    with pytest.raises(LogSegmentOffsetOverflowError):
        open_index(tmp_path).append(offset, 1)


@pytest.mark.parametrize(
    ("offset", "left"), [(BASE, 0), (55, 0), (56, 1), (65, 1), (66, 2), (95, 4), (96, 5), (999, 5)]
)
def test_truncate_to_removes_entries_at_and_above(tmp_path: Path, offset: int, left: int) -> None:
    index = filled(tmp_path, 5)

    index.truncate_to(offset)

    assert index.entries == left
    assert index.last_offset == (BASE + left * 10 if left else BASE)


@pytest.mark.parametrize(
    ("position", "size", "bound"),
    [(0, 50, 55), (0, 100, 55), (0, 101, 65), (100, 400, 95), (0, 501, None)],
)
def test_upper_bound_is_the_first_entry_behind_the_fetched_bytes(
    tmp_path: Path, position: int, size: int, bound: int | None
) -> None:
    found = filled(tmp_path, 5).fetch_upper_bound_offset(OffsetPosition(BASE, position), size)

    assert (None if found is None else found.offset) == bound


def test_reset_forgets_everything_and_makes_room(tmp_path: Path) -> None:
    filled(tmp_path, 5).close()
    index = open_index(tmp_path)

    index.reset()
    index.append(BASE + 3, 7)

    assert (index.entries, index.length, index.lookup(BASE + 3)) == (1, 240, (BASE + 3, 7))


@pytest.mark.parametrize("content", [b"\0" * 80, b"1234567", b"\xff" * 8])
def test_garbage_fails_the_sanity_check(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.index").write_bytes(content)

    with pytest.raises(CorruptIndexError):
        open_index(tmp_path).sanity_check()


def test_lookup_after_close_is_a_storage_error(tmp_path: Path) -> None:
    index = filled(tmp_path, 5)

    index.close_handler()

    with pytest.raises(KafkaStorageError, match="closed"):
        index.lookup(BASE + 20)


def test_rename_and_delete_follow_the_file(tmp_path: Path) -> None:
    index = filled(tmp_path, 2)

    index.rename_to(str(tmp_path / "x.index.deleted"))
    was_there = index.delete_if_exists()

    assert was_there
    assert not index.delete_if_exists()
    assert list(tmp_path.iterdir()) == []


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    steps=st.lists(st.integers(1, 50), min_size=1, max_size=2500),
    targets=st.lists(st.integers(-10, 60_000), min_size=1, max_size=40),
)
def test_lookup_agrees_with_a_linear_search(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], targets: list[int]
) -> None:
    index = open_index(tmp_path_factory.mktemp("index"), max_size=2500 * 8, base=0)
    entries = []
    offset = 0
    for i, step in enumerate(steps):
        offset += step
        index.append(offset, i + 1)
        entries.append((offset, i + 1))

    for target in targets:
        below = [entry for entry in entries if entry[0] <= target]
        assert index.lookup(target) == (below[-1] if below else (0, 0))
    index.close()


@pytest.mark.parametrize("max_size", [0, 4, 7])
def test_index_that_is_too_small_for_an_entry_has_room_for_one(
    tmp_path: Path, max_size: int
) -> None:
    index = open_index(tmp_path, max_size=max_size)

    index.append(BASE + 10, 100)

    assert index.is_full
    assert index.lookup(BASE + 10) == (BASE + 10, 100)
