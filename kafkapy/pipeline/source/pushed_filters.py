"""Filters of a query that keep records from being read at all."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeGuard

from pyspark.sql.datasource import (
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
)

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.source.offset_range import OffsetRange

_TOPIC = ("topic",)
_PARTITION = ("partition",)
_OFFSET = ("offset",)
_TIMESTAMP = ("timestamp",)
_NEVER_NULL = (_TOPIC, _PARTITION, _OFFSET)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

_COMPARISONS: Mapping[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    In: lambda value, values: value in values,
}

# The first offsets at or after given times, negative where there is none.
OffsetsAtTimes = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]]


@dataclass(frozen=True, slots=True)
class PushedFilters:
    """What is known of topic, partition, offset and timestamp of the rows wanted. Picklable."""

    of_partitions: tuple[Filter, ...] = ()  # each is true or false of a whole partition
    from_offset: int = 0
    until_offset: int | None = None
    from_time_ms: int | None = None

    def push(self, filters: Iterable[Filter]) -> tuple[PushedFilters, list[Filter]]:
        """With those that are of use; and those that Spark still has to apply."""
        pushed = self
        left: list[Filter] = []
        for wanted in filters:
            narrowed = pushed._with(wanted)
            if narrowed is None or _is_of(wanted, _TIMESTAMP):
                # Times are in no order: only what is before the first that is late enough can be
                # left out.
                left.append(wanted)
            pushed = narrowed or pushed
        return pushed, left

    def narrow(self, ranges: Iterable[OffsetRange], at_times: OffsetsAtTimes) -> list[OffsetRange]:
        """What is left of the ranges."""
        left = [
            self._between_offsets(offset_range)
            for offset_range in ranges
            if all(_holds(wanted, offset_range.topic_partition) for wanted in self.of_partitions)
        ]
        if self.from_time_ms is None or not left:
            return left
        found = at_times({r.topic_partition: self.from_time_ms for r in left})
        return [
            replace(r, from_offset=max(r.from_offset, found[r.topic_partition]))
            for r in left
            if found[r.topic_partition] >= 0
        ]

    def _between_offsets(self, offset_range: OffsetRange) -> OffsetRange:
        until = offset_range.until_offset
        return replace(
            offset_range,
            from_offset=max(offset_range.from_offset, self.from_offset),
            until_offset=until if self.until_offset is None else min(until, self.until_offset),
        )

    def _with(self, wanted: Filter) -> PushedFilters | None:
        """None when the filter is of no use."""
        if isinstance(wanted, IsNotNull):
            return self if wanted.attribute in _NEVER_NULL else None
        if _is_of_partitions(wanted):
            return replace(self, of_partitions=(*self.of_partitions, wanted))
        value = getattr(wanted, "value", None)
        if _is_of(wanted, _OFFSET) and _is_int(value):
            return self._with_offset(wanted, value)
        if (
            _is_of(wanted, _TIMESTAMP)
            and isinstance(wanted, GreaterThan | GreaterThanOrEqual | EqualTo)
            and isinstance(value, datetime)
            and value.tzinfo is not None
        ):
            from_ms = (value - _EPOCH) // _MILLISECOND
            # Brokers find no record by a time before 1970; one without a time has such a one, -1.
            return replace(self, from_time_ms=max(from_ms, self.from_time_ms or 0) or None)
        return None

    def _with_offset(self, wanted: Filter, value: int) -> PushedFilters | None:
        match wanted:
            case EqualTo() | EqualNullSafe():
                return self._within(value, value + 1)
            case GreaterThan():
                return self._within(value + 1, None)
            case GreaterThanOrEqual():
                return self._within(value, None)
            case LessThan():
                return self._within(0, value)
            case LessThanOrEqual():
                return self._within(0, value + 1)
        return None

    def _within(self, start: int, until: int | None) -> PushedFilters:
        ends = [end for end in (self.until_offset, until) if end is not None]
        return replace(
            self, from_offset=max(self.from_offset, start), until_offset=min(ends, default=None)
        )


def _is_of(wanted: Filter, column: tuple[str, ...]) -> bool:
    return getattr(wanted, "attribute", None) == column


def _is_of_partitions(wanted: Filter) -> bool:
    if isinstance(wanted, Not):
        # Of what is not negated a null is false, and so is what is negated.
        child = wanted.child
        return isinstance(child, EqualTo | In) and _is_of_partitions(child)
    if type(wanted) not in _COMPARISONS:
        return False
    value = wanted.value  # type: ignore[attr-defined]
    values = value if isinstance(wanted, In) else (value,)
    if _is_of(wanted, _TOPIC):
        return all(isinstance(value, str) for value in values)
    return _is_of(wanted, _PARTITION) and all(map(_is_int, values))


def _holds(wanted: Filter, partition: TopicPartition) -> bool:
    if isinstance(wanted, Not):
        return not _holds(wanted.child, partition)
    actual = partition.topic if _is_of(wanted, _TOPIC) else partition.partition
    return _COMPARISONS[type(wanted)](actual, wanted.value)  # type: ignore[attr-defined]


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
