"""Records sections of v2 batches, taken apart a field at a time.

The sections of many batches are put one behind the other, which gives one stream of records; each
step below then reads one field of all of them. The layout of a record is in
`kafkapy.common.record.default_record`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kafkapy.common.record.record import TimestampType
from kafkapy.pipeline.columnar.record_schema import Column
from kafkapy.pipeline.columnar.record_walk import record_starts
from kafkapy.pipeline.columnar.varint_columns import (
    PADDING,
    ByteColumn,
    IntColumn,
    read_varints,
    read_varlongs,
)


class RecordSection(NamedTuple):
    """The uncompressed records of one batch, and what its header says of all of them."""

    content: bytes | memoryview
    record_count: int
    base_offset: int
    base_timestamp: int
    append_time: int | None  # of all records, if the broker stamped them
    timestamp_type: TimestampType


@dataclass(frozen=True, slots=True)
class SizedFields:
    """Where one field of each record is; a negative size stands for null."""

    positions: IntColumn
    sizes: IntColumn

    @property
    def ends(self) -> IntColumn:
        return self.positions + np.maximum(self.sizes, 0)

    def select(self, rows: slice | IntColumn) -> SizedFields:
        return SizedFields(self.positions[rows], self.sizes[rows])


@dataclass(frozen=True, slots=True)
class HeaderFields:
    """How many headers each record has, where the first begins and where the last must end."""

    counts: IntColumn
    positions: IntColumn
    ends: IntColumn

    def select(self, rows: slice | IntColumn) -> HeaderFields:
        return HeaderFields(self.counts[rows], self.positions[rows], self.ends[rows])


@dataclass(frozen=True, slots=True)
class RecordFields:
    """What a stream of records holds, a row each; None for what nobody wants.

    Positions are those of `data`. Timestamps are in milliseconds.
    """

    data: ByteColumn
    starts: IntColumn
    ends: IntColumn
    offsets: IntColumn
    timestamps: IntColumn
    timestamp_types: IntColumn
    keys: SizedFields | None
    values: SizedFields | None
    headers: HeaderFields | None

    @staticmethod
    def decode(sections: Sequence[RecordSection], columns: frozenset[Column]) -> RecordFields:
        """Of at least one section; ValueError if one is not made of the records it declares."""
        contents, record_counts, base_offsets, base_timestamps, append_times, types = zip(
            *sections, strict=True
        )
        content = b"".join([PADDING, *contents, PADDING])
        data = np.frombuffer(content, np.uint8)
        counts = np.array(record_counts, np.int64)
        sizes = np.array([len(each) for each in contents], np.int64)
        if (counts < 0).any() or (counts > sizes).any():
            raise ValueError("the number of records cannot be right")
        begin = len(PADDING)
        bounds = record_starts(
            content, begin=begin, end=len(content) - begin, count=int(counts.sum())
        )
        if (bounds[counts.cumsum()] != begin + sizes.cumsum()).any():
            raise ValueError("the records do not end where their batch does")
        starts, ends = bounds[:-1], bounds[1:]

        _, position = read_varints(data, starts)
        timestamp_deltas, position = read_varlongs(data, position + 1)
        offset_deltas, position = read_varints(data, position)
        key_sizes, position = read_varints(data, position)
        keys = SizedFields(position, key_sizes)
        _check(keys.ends, ends)
        values = None
        headers = None
        if not columns.isdisjoint((Column.VALUE, Column.HEADERS)):
            value_sizes, position = read_varints(data, keys.ends)
            values = SizedFields(position, value_sizes)
            _check(values.ends, ends)
            if Column.HEADERS in columns:
                header_counts, position = read_varints(data, values.ends)
                headers = HeaderFields(header_counts, position, ends)
                _check(position + header_counts, ends)
                if (header_counts < 0).any():
                    raise ValueError("a record has a negative number of headers")
        return RecordFields(
            data=data,
            starts=starts,
            ends=ends,
            offsets=_by_record(base_offsets, counts) + offset_deltas,
            timestamps=_timestamps(
                _by_record(base_timestamps, counts) + timestamp_deltas, append_times, counts
            ),
            timestamp_types=_by_record(types, counts),
            keys=keys if Column.KEY in columns else None,
            values=values if Column.VALUE in columns else None,
            headers=headers,
        )

    @property
    def count(self) -> int:
        return self.offsets.size

    def select(self, rows: slice | IntColumn) -> RecordFields:
        """Some of the rows, over the same data."""
        return RecordFields(
            data=self.data,
            starts=self.starts[rows],
            ends=self.ends[rows],
            offsets=self.offsets[rows],
            timestamps=self.timestamps[rows],
            timestamp_types=self.timestamp_types[rows],
            keys=None if self.keys is None else self.keys.select(rows),
            values=None if self.values is None else self.values.select(rows),
            headers=None if self.headers is None else self.headers.select(rows),
        )


def _by_record(of_sections: Sequence[int], counts: IntColumn) -> IntColumn:
    return np.repeat(np.array(of_sections, np.int64), counts)


def _timestamps(
    timestamps: IntColumn, append_times: Sequence[int | None], counts: IntColumn
) -> IntColumn:
    """The records' own, or the append times of sections that have one."""
    stamped = [time is not None for time in append_times]
    if any(stamped):
        by_record = _by_record([time or 0 for time in append_times], counts)
        np.copyto(timestamps, by_record, where=np.repeat(stamped, counts))
    return timestamps


def _check(positions: IntColumn, ends: IntColumn) -> None:
    # Sizes have 32 bits, so that a position cannot wrap around and look small.
    if (positions > ends).any():
        raise ValueError("a record's field goes past the record's end")
