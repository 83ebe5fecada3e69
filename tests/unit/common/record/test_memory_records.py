import pytest

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import CorruptRecordError
from kafkapy.common.record.memory_records import MemoryRecords
from tests.helpers.records import forged, joined, records, values


def test_batches_follow_each_other() -> None:
    source = joined(records("a", "b"), records("c", offset=2), records("d", magic=1, offset=3))

    batches = list(source.batches())

    assert [(b.base_offset, b.last_offset, b.magic) for b in batches] == [
        (0, 1, 2),
        (2, 2, 2),
        (3, 3, 1),
    ]
    assert values(source) == [b"a", b"b", b"c", b"d"]
    assert source.valid_bytes == source.size_in_bytes == len(source)
    assert source.has_matching_magic(2) is False


def test_a_change_in_place_is_seen_by_later_readers_of_the_same_records() -> None:
    source = records("a")

    source.batches()[0].set_last_offset(7)

    assert source.batches()[0].base_offset == 7
    assert MemoryRecords(source.buffer).batches()[0].base_offset == 7


def test_empty_records_have_no_batches() -> None:
    assert list(MemoryRecords.EMPTY.batches()) == []
    assert MemoryRecords.EMPTY.size_in_bytes == 0
    assert MemoryRecords.EMPTY.first_batch_size() is None
    assert MemoryRecords.with_records() == MemoryRecords.EMPTY


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_truncation_leaves_the_whole_batches(magic: int) -> None:
    first, second = records("a", magic=magic), records("b", offset=1, magic=magic)
    both = joined(first, second)

    for size in range(both.size_in_bytes + 1):
        cut = MemoryRecords(bytes(both.buffer[:size]))
        expected = (size >= first.size_in_bytes) + (size == both.size_in_bytes)
        assert len(list(cut.batches())) == expected
        assert cut.valid_bytes == sum(b.size_in_bytes for b in cut.batches())


def test_size_of_the_first_batch_is_known_before_it_is_whole() -> None:
    source = records("value")

    assert MemoryRecords(source.buffer[:17]).first_batch_size() == source.size_in_bytes
    assert MemoryRecords(source.buffer[:16]).first_batch_size() is None
    assert MemoryRecords(source.buffer[:11]).first_batch_size() is None


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_impossible_size_is_corrupt(length: int) -> None:
    source = forged(records(), length=length)

    with pytest.raises(CorruptRecordError, match="size"):
        list(source.batches())
    with pytest.raises(CorruptRecordError, match="size"):
        source.first_batch_size()


@pytest.mark.parametrize("length", [14, 48])
def test_v2_batch_smaller_than_its_header_is_corrupt(length: int) -> None:
    with pytest.raises(CorruptRecordError, match="smaller"):
        list(forged(records(), length=length).batches())


@pytest.mark.parametrize("magic", [3, 127, -1, -128])
def test_unknown_magic_is_corrupt(magic: int) -> None:
    with pytest.raises(CorruptRecordError, match="magic"):
        list(forged(records(), magic=magic).batches())


def test_equality_is_by_content() -> None:
    assert records("a") == MemoryRecords(bytes(records("a").buffer))
    assert hash(records("a")) == hash(records("a"))
    assert records("a") != records("b")
    assert records("a") != "a"
    assert "size=" in repr(records("a", codec=CompressionType.GZIP))
