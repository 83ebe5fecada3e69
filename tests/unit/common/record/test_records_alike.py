"""Walking runs of records that are alike finds just what reading them one by one finds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.errors import InvalidRecordError
from kafkapy.common.record.default_record import RecordWalk, read_records, walk_records
from kafkapy.common.record.record_input import RecordInput
from kafkapy.common.record.records_alike import RecordsAlike, records_alike
from tests.helpers.records import record_bytes

_RUN = 20


def run(count: int = _RUN, first: int = 0, value: bytes = b"value", delta: int = 0) -> list[bytes]:
    """Consecutive records, alike."""
    return [
        record_bytes(value, key=b"key", timestamp_delta=delta, offset_delta=index)
        for index in range(first, first + count)
    ]


def alike_behind_the_first(records: list[bytes]) -> RecordsAlike | None:
    return records_alike(b"".join(records), 0, len(records[0]), 1, len(records))


def walked(data: bytes, count: int) -> RecordWalk | None:
    """What the walk finds; None for records that are not valid."""
    try:
        return walk_records(RecordInput(data), count)
    except InvalidRecordError:
        return None


def read(data: bytes, count: int) -> RecordWalk | None:
    """The same, one by one."""
    source = RecordInput(data)
    try:
        records = list(
            read_records(
                source,
                count=count,
                base_offset=0,
                base_timestamp=0,
                base_sequence=-1,
                log_append_time=None,
            )
        )
    except InvalidRecordError:
        return None
    deltas = [record.timestamp for record in records]
    return (
        min(deltas),
        max(deltas),
        all(record.key is not None for record in records),
        [record.offset for record in records] == list(range(count)),
    )


@pytest.mark.parametrize("value", [b"", b"v", b"v" * 63, b"v" * 64, b"v" * 9_000])
def test_whole_run_is_taken(value: bytes) -> None:
    assert alike_behind_the_first(run(value=value)) == RecordsAlike(_RUN - 1, 0, 0)


@pytest.mark.parametrize(
    "other",
    [
        record_bytes(b"longer", key=b"key", offset_delta=12),
        record_bytes(b"valu", key=b"keys", offset_delta=12),  # as long, its parts are not
        record_bytes(b"valueke", key=None, offset_delta=12),
        record_bytes(b"valu", key=b"key", timestamp_delta=1_000, offset_delta=12),
    ],
)
def test_run_ends_before_a_record_that_is_not_alike(other: bytes) -> None:
    records = [*run(12), other, *run(_RUN, first=13)]

    assert alike_behind_the_first(records) == RecordsAlike(11, 0, 0)


def test_extremes_of_the_timestamps_are_those_of_the_run() -> None:
    records = run(5, delta=3) + run(5, first=5, delta=-64) + run(5, first=10, delta=63)

    assert alike_behind_the_first(records) == RecordsAlike(14, -64, 63)


@pytest.mark.parametrize("first", [40, 64, 100, 8_170])
def test_run_ends_where_offset_deltas_get_longer(first: int) -> None:
    data = b"".join(run(1) + run(_RUN * 2, first=first))
    start, end = len(run(1)[0]), len(run(1)[0]) + len(run(1, first=first)[0])

    alike = records_alike(data, start, end, first + 1, first + _RUN * 2)

    ends = next(length for length in (64, 8_192) if length > first)
    assert alike is not None
    assert alike.number == min(_RUN * 2, ends - first) - 1


@pytest.mark.parametrize(
    "records",
    [
        run(4),
        [*run(1), record_bytes(b"other"), *run(first=2)],
        run(1) + run(first=2),
        [record_bytes(timestamp_delta=1_000), *run(first=1)],
    ],
    ids=["few", "next is not alike", "offsets leave one out", "long timestamp"],
)
def test_few_or_none_are_left_to_the_walk(records: list[bytes]) -> None:
    assert alike_behind_the_first(records) is None


@pytest.mark.parametrize("record", [2, 10, _RUN - 1])
@pytest.mark.parametrize("first", [0, 70])
def test_any_changed_byte_of_a_run_is_noticed_as_by_reading(record: int, first: int) -> None:
    records = run(first + _RUN)
    record += first
    start = sum(map(len, records[:record]))
    for place in range(start, start + len(records[record])):
        for byte in (0, 1, 2, 3, 5, 7, 11, 0x7F, 0x80, 0x81, 0xFF):
            data = bytearray(b"".join(records))
            data[place] = byte

            assert walked(bytes(data), len(records)) == read(bytes(data), len(records))


runs = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 9, 30, 70]),
        st.sampled_from([None, b"", b"k", b"key"]),
        st.sampled_from([None, b"", b"value", b"v" * 100]),
        st.sampled_from([0, -1, 5, 63, 64, -65, 10_000]),
    ),
    min_size=1,
    max_size=5,
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records, with some of their bytes changed at times, and how many there should be."""
    body = bytearray()
    total = 0
    left_out = 0  # of the offsets
    for count, key, value, delta in draw(runs):
        for index in range(total + left_out, total + left_out + count):
            body += record_bytes(value, key=key, timestamp_delta=delta, offset_delta=index)
        total += count
        left_out += draw(st.sampled_from([0, 0, 0, 1]))
    for place in draw(st.lists(st.integers(0, len(body) - 1), max_size=2)):
        body[place] = draw(st.integers(0, 255))
    return bytes(body), total


@settings(derandomize=True, deadline=None, max_examples=100)
@given(bodies())
def test_walk_finds_what_reading_finds(body: tuple[bytes, int]) -> None:
    data, count = body

    assert walked(data, count) == read(data, count)
