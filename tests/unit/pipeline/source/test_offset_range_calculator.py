import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.source.offset_range import OffsetRange
from kafkapy.pipeline.source.offset_range_calculator import OffsetRangeCalculator


def r(partition: int, start: int, end: int) -> OffsetRange:
    return OffsetRange(TopicPartition("t", partition), start, end)


def spans(ranges: list[OffsetRange]) -> list[tuple[int, int, int]]:
    return [(x.topic_partition.partition, x.from_offset, x.until_offset) for x in ranges]


@pytest.mark.parametrize(
    ("min_partitions", "max_records", "ranges", "expected"),
    [
        # Nothing asked for: only what is empty goes.
        (None, None, [r(1, 1, 2), r(2, 5, 5), r(3, 6, 4)], [(1, 1, 2)]),
        # Fewer asked for than there are.
        (1, None, [r(1, 1, 2), r(2, 1, 2)], [(1, 1, 2), (2, 1, 2)]),
        (3, None, [r(1, 1, 5)], [(1, 1, 2), (1, 2, 3), (1, 3, 5)]),
        (4, None, [r(1, 1, 5), r(2, 1, 5)], [(1, 1, 3), (1, 3, 5), (2, 1, 3), (2, 3, 5)]),
        # More asked for than there are offsets.
        (6, None, [r(1, 1, 3)], [(1, 1, 2), (1, 2, 3)]),
        pytest.param(
            10**12, None, [r(1, 1, 3)], [(1, 1, 2), (1, 2, 3)], marks=pytest.mark.timeout(20)
        ),
        # What is small stays whole, and takes its part out of the sum.
        (
            3,
            None,
            [r(1, 0, 5), r(2, 0, 5), r(3, 0, 10_000)],
            [(1, 0, 5), (2, 0, 5), (3, 0, 10_000)],
        ),
        (
            4,
            None,
            [r(1, 0, 5), r(2, 0, 10_000)],
            [(1, 0, 5), (2, 0, 3333), (2, 3333, 6666), (2, 6666, 10_000)],
        ),
        # Halves are rounded up, as in Java.
        (3, None, [r(1, 0, 10), r(2, 0, 10)], [(1, 0, 5), (1, 5, 10), (2, 0, 5), (2, 5, 10)]),
        (None, 4, [r(1, 0, 10)], [(1, 0, 3), (1, 3, 6), (1, 6, 10)]),
        (None, 10, [r(1, 0, 10), r(2, 3, 4)], [(1, 0, 10), (2, 3, 4)]),
        # First none too long, then enough of them.
        (2, 5, [r(1, 0, 10)], [(1, 0, 5), (1, 5, 10)]),
        (4, 5, [r(1, 0, 8)], [(1, 0, 2), (1, 2, 4), (1, 4, 6), (1, 6, 8)]),
    ],
)
def test_ranges_are_divided_as_sparks_are(
    min_partitions: int | None,
    max_records: int | None,
    ranges: list[OffsetRange],
    expected: list[tuple[int, int, int]],
) -> None:
    assert spans(OffsetRangeCalculator(min_partitions, max_records).ranges(ranges)) == expected


@settings(derandomize=True, max_examples=80, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 10**15), st.integers(0, 5_000)), max_size=6),
    min_partitions=st.none() | st.integers(1, 40),
    max_records=st.none() | st.integers(50, 10_000),
)
def test_parts_cover_exactly_what_was_to_be_read(
    sizes: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    ranges = [r(number, start, start + size) for number, (start, size) in enumerate(sizes)]

    parts = OffsetRangeCalculator(min_partitions, max_records).ranges(ranges)

    for whole in ranges:
        mine = [part for part in parts if part.topic_partition == whole.topic_partition]
        assert sum(part.size for part in mine) == whole.size
        position = whole.from_offset
        for part in mine:
            assert part.from_offset == position < part.until_offset
            assert max_records is None or part.size <= max_records
            position = part.until_offset
        assert not mine or position == whole.until_offset
