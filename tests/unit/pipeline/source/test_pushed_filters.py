import pickle
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.kafka_source_reader import source_reader
from kafkapy.pipeline.source.offset_range import OffsetRange
from kafkapy.pipeline.source.pushed_filters import PushedFilters

RANGES = [OffsetRange(TopicPartition(t, p), 10, 20) for t in ("a", "b") for p in (0, 1)]
TIME = datetime(2024, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)
TIME_MS = 1_704_164_645_678


def no_times(_: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    raise AssertionError("no time is asked for")


def left_of(*filters: Filter) -> list[str]:
    pushed, left = PushedFilters().push(filters)
    assert left == []
    return [str(x) for x in pushed.narrow(RANGES, no_times) if x.size > 0]


@pytest.mark.parametrize(
    ("wanted", "read"),
    [
        (EqualTo(("topic",), "a"), ["a-0", "a-1"]),
        (EqualNullSafe(("topic",), "b"), ["b-0", "b-1"]),
        (In(("topic",), ("b", "c")), ["b-0", "b-1"]),
        (Not(EqualTo(("topic",), "a")), ["b-0", "b-1"]),
        (Not(In(("topic",), ("a", "b"))), []),
        (GreaterThan(("topic",), "a"), ["b-0", "b-1"]),
        (EqualTo(("partition",), 1), ["a-1", "b-1"]),
        (LessThan(("partition",), 1), ["a-0", "b-0"]),
        (LessThanOrEqual(("partition",), 0), ["a-0", "b-0"]),
        (GreaterThanOrEqual(("partition",), 2), []),
        (Not(EqualTo(("partition",), 0)), ["a-1", "b-1"]),
        (IsNotNull(("topic",)), ["a-0", "a-1", "b-0", "b-1"]),
    ],
)
def test_partitions_that_a_filter_excludes_are_not_read(wanted: Filter, read: list[str]) -> None:
    assert left_of(wanted) == [f"{partition} [10, 20)" for partition in read]


@pytest.mark.parametrize(
    ("wanted", "read"),
    [
        (EqualTo(("offset",), 12), "[12, 13)"),
        (GreaterThan(("offset",), 12), "[13, 20)"),
        (GreaterThanOrEqual(("offset",), 12), "[12, 20)"),
        (GreaterThanOrEqual(("offset",), 2), "[10, 20)"),
        (LessThan(("offset",), 12), "[10, 12)"),
        (LessThanOrEqual(("offset",), 12), "[10, 13)"),
        (LessThanOrEqual(("offset",), 99), "[10, 20)"),
        (IsNotNull(("offset",)), "[10, 20)"),
        (LessThan(("offset",), 10), None),
    ],
)
def test_offsets_that_a_filter_excludes_are_not_read(wanted: Filter, read: str | None) -> None:
    found = left_of(EqualTo(("topic",), "a"), EqualTo(("partition",), 0), wanted)

    assert found == ([] if read is None else [f"a-0 {read}"])


def test_filters_together_leave_what_all_of_them_leave() -> None:
    found = left_of(
        In(("topic",), ("a", "b")),
        EqualTo(("partition",), 1),
        GreaterThan(("offset",), 11),
        GreaterThan(("offset",), 5),
        LessThan(("offset",), 15),
        LessThan(("offset",), 18),
    )

    assert found == ["a-1 [12, 15)", "b-1 [12, 15)"]


@pytest.mark.parametrize(
    "wanted",
    [
        EqualTo(("value",), b"x"),
        EqualTo(("topic",), 5),
        EqualTo(("partition",), "1"),
        EqualTo(("offset",), True),
        EqualNullSafe(("offset",), None),
        In(("offset",), (1, 2)),
        In(("partition",), (1, None)),
        Not(In(("topic",), ("a", None))),
        Not(GreaterThan(("offset",), 3)),
        Not(GreaterThan(("partition",), 3)),
        StringStartsWith(("topic",), "a"),
        IsNotNull(("key",)),
        LessThan(("timestamp",), TIME),
        GreaterThan(("timestamp",), TIME.replace(tzinfo=None)),
        # Records without a time have that of one millisecond before 1970.
        GreaterThan(("timestamp",), TIME.replace(year=1969)),
        EqualTo(("headers", "key"), "x"),
    ],
)
def test_a_filter_of_no_use_is_left_to_spark(wanted: Filter) -> None:
    pushed, left = PushedFilters().push([wanted])

    assert left == [wanted]
    assert pushed == PushedFilters()


@pytest.mark.parametrize("kind", [GreaterThan, GreaterThanOrEqual, EqualTo])
def test_a_time_leaves_out_what_is_before_its_first_record_and_spark_does_the_rest(
    kind: type[GreaterThan],
) -> None:
    wanted = kind(("timestamp",), TIME)
    asked: list[Mapping[TopicPartition, int]] = []

    def at_times(times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        asked.append(times)
        return {TopicPartition("a", 0): 15, TopicPartition("a", 1): -1}

    pushed, left = PushedFilters().push([wanted, EqualTo(("topic",), "a")])
    found = pushed.narrow(RANGES, at_times)

    assert left == [wanted]
    assert [str(x) for x in found] == ["a-0 [15, 20)"]
    assert asked == [{TopicPartition("a", 0): TIME_MS, TopicPartition("a", 1): TIME_MS}]


def test_only_a_reader_that_was_asked_to_takes_filters() -> None:
    options = {"kafka.bootstrap.servers": "x:1", "subscribe": "a"}
    schema = spark_schema(include_headers=False)
    plain = source_reader(SourceOptions.for_batch(options), schema)
    filtering = source_reader(SourceOptions.for_batch(options | {"pushFilters": "true"}), schema)
    wanted = EqualTo(("value",), b"x")

    # What Spark looks at where filters are not pushed.
    assert plain.pushFilters.__func__ is DataSourceReader.pushFilters  # type: ignore[attr-defined]
    assert list(filtering.pushFilters([EqualTo(("topic",), "a"), wanted])) == [wanted]
    copy = pickle.loads(pickle.dumps(filtering))
    assert copy._filters.of_partitions == (EqualTo(("topic",), "a"),)
