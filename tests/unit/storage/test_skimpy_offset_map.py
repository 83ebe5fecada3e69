"""The map from keys to their last offsets."""

import pytest

from kafkapy.storage.skimpy_offset_map import BYTES_PER_ENTRY, NOT_FOUND, SkimpyOffsetMap


def new_map(slots: int, expected: int | None = None) -> SkimpyOffsetMap:
    found = SkimpyOffsetMap(slots * BYTES_PER_ENTRY)
    found.clear(expected)
    return found


@pytest.mark.parametrize(("slots", "entries"), [(10, 10), (1000, 900), (4000, 2000)])
@pytest.mark.parametrize("is_sized", [False, True])
def test_every_key_gives_back_its_last_offset(slots: int, entries: int, is_sized: bool) -> None:
    offset_map = new_map(slots, entries if is_sized else None)
    for offset in range(entries):
        offset_map.put(b"key-%d" % offset, offset)
    for offset in range(0, entries, 3):
        offset_map.put(b"key-%d" % offset, entries + offset)

    assert len(offset_map) == entries
    for offset in range(entries):
        expected = entries + offset if offset % 3 == 0 else offset
        assert offset_map.get(b"key-%d" % offset) == expected


@pytest.mark.parametrize("entries", [0, 5, 10])
def test_unknown_key_is_not_found(entries: int) -> None:
    offset_map = new_map(10)
    for offset in range(entries):
        offset_map.put(b"%d" % offset, offset)

    assert offset_map.get(b"unknown") == NOT_FOUND


def test_offset_zero_is_an_offset() -> None:
    offset_map = new_map(10)
    offset_map.put(b"", 0)

    assert (offset_map.get(b""), len(offset_map)) == (0, 1)


def test_key_beyond_the_last_slot_is_refused() -> None:
    offset_map = new_map(3)
    for offset in range(3):
        offset_map.put(b"%d" % offset, offset)

    offset_map.put(b"1", 7)
    with pytest.raises(ValueError, match="full"):
        offset_map.put(b"3", 8)
    assert (offset_map.get(b"1"), offset_map.utilization) == (7, 1.0)


def test_clear_forgets_everything() -> None:
    offset_map = new_map(10)
    offset_map.put(b"a", 5)

    offset_map.clear()

    assert (len(offset_map), offset_map.get(b"a"), offset_map.latest_offset) == (0, NOT_FOUND, -1)


def test_latest_offset_is_the_last_put_unless_told_otherwise() -> None:
    offset_map = new_map(10)
    offset_map.put(b"a", 5)
    assert offset_map.latest_offset == 5

    offset_map.update_latest_offset(9)

    assert offset_map.latest_offset == 9


def test_memory_is_there_only_between_clear_and_close() -> None:
    offset_map = SkimpyOffsetMap(1 << 40)  # far more than there is: nothing is taken yet
    with pytest.raises(ValueError, match="clear"):
        offset_map.get(b"a")

    offset_map.clear(100)
    offset_map.put(b"a", 1)
    offset_map.close()
    offset_map.close()

    with pytest.raises(ValueError, match="clear"):
        offset_map.get(b"a")


def test_too_little_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="hold no entry"):
        SkimpyOffsetMap(BYTES_PER_ENTRY - 1)
