"""Arrow columns out of the places where records have their fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.columnar.record_fields import HeaderFields, RecordFields, SizedFields
from kafkapy.pipeline.columnar.record_schema import Column, RecordSchema
from kafkapy.pipeline.columnar.varint_columns import ByteColumn, IntColumn, read_varints
from kafkapy.pipeline.pipeline_errors import PipelineError

# Milliseconds that still fit as microseconds.
_MAX_MILLISECONDS: Final = (2**63 - 1) // 1000


class ArrowColumns:
    """Builds the record batches of one partition's rows; not thread-safe."""

    def __init__(self, topic_partition: TopicPartition, schema: RecordSchema) -> None:
        self._topic_partition = topic_partition
        self._schema = schema
        builders: dict[Column, Callable[[RecordFields], pa.Array]] = {
            Column.KEY: _keys,
            Column.VALUE: _values,
            Column.TOPIC: self._topic,
            Column.PARTITION: self._partition,
            Column.OFFSET: _offsets,
            Column.TIMESTAMP: self._timestamp,
            Column.TIMESTAMP_TYPE: _timestamp_types,
            Column.HEADERS: _headers,
        }
        self._builders = [builders[column] for column in schema.ordered]

    def record_batch(self, fields: RecordFields) -> pa.RecordBatch:
        """Raises ValueError for headers that are not where they should be."""
        arrays = [build(fields) for build in self._builders]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema.arrow)

    def _topic(self, fields: RecordFields) -> pa.Array:
        return pa.repeat(pa.scalar(self._topic_partition.topic, pa.string()), fields.count)

    def _partition(self, fields: RecordFields) -> pa.Array:
        return pa.array(np.full(fields.count, self._topic_partition.partition, np.int32))

    def _timestamp(self, fields: RecordFields) -> pa.Array:
        milliseconds = fields.timestamps
        outside = np.flatnonzero(
            (milliseconds > _MAX_MILLISECONDS) | (milliseconds < -_MAX_MILLISECONDS)
        )
        if outside.size:
            raise PipelineError(
                f"{self._topic_partition}: the timestamp {milliseconds[outside[0]]} at offset "
                f"{fields.offsets[outside[0]]} is outside what Spark can hold; a schema without "
                f"the column timestamp reads the record"
            )
        return pa.array(milliseconds * 1000).view(pa.timestamp("us", "UTC"))


def _keys(fields: RecordFields) -> pa.Array:
    assert fields.keys is not None
    return _binary(fields.data, fields.keys)


def _values(fields: RecordFields) -> pa.Array:
    assert fields.values is not None
    return _binary(fields.data, fields.values)


def _offsets(fields: RecordFields) -> pa.Array:
    return pa.array(fields.offsets)


def _timestamp_types(fields: RecordFields) -> pa.Array:
    return pa.array(fields.timestamp_types.astype(np.int32))


def _headers(fields: RecordFields) -> pa.Array:
    headers = fields.headers
    assert headers is not None
    # A record without headers has null there, as in the official connector.
    offsets = np.zeros(fields.count + 1, np.int64)
    np.cumsum(headers.counts, out=offsets[1:])
    without = headers.counts == 0
    keys, values = _header_fields(fields.data, headers, offsets)
    entries = pa.StructArray.from_arrays(
        [_text(_binary(fields.data, keys)), _binary(fields.data, values)], ["key", "value"]
    )
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), entries, mask=pa.array(without)
    )


def _header_fields(
    data: ByteColumn, headers: HeaderFields, firsts: IntColumn
) -> tuple[SizedFields, SizedFields]:
    """The keys and values of all headers, in order: the first of each row, then the second, …"""
    total = int(headers.counts.sum())
    keys = SizedFields(np.empty(total, np.int64), np.empty(total, np.int64))
    values = SizedFields(np.empty(total, np.int64), np.empty(total, np.int64))
    position = headers.positions.copy()
    rows = np.flatnonzero(headers.counts > 0)
    number = 0
    while rows.size:
        at = firsts[rows] + number
        keys.sizes[at], key_positions = read_varints(data, position[rows])
        if (keys.sizes[at] < 0).any():
            raise ValueError("a record's header has no key")
        keys.positions[at] = key_positions
        values.sizes[at], values.positions[at] = read_varints(data, keys.ends[at])
        position[rows] = values.ends[at]
        if (position[rows] > headers.ends[rows]).any():
            raise ValueError("a record's headers go past the record's end")
        number += 1
        rows = rows[headers.counts[rows] > number]
    if (position != headers.ends).any():
        raise ValueError("a record does not end where its headers do")
    return keys, values


def _binary(data: ByteColumn, fields: SizedFields) -> pa.Array:
    """One array over data in which every other entry is a field, and of it those entries only."""
    count = fields.sizes.size
    nulls = fields.sizes < 0
    if nulls.all():
        return pa.nulls(count, pa.binary())
    base = int(fields.positions[0])
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2] = fields.positions - base
    offsets[1::2] = fields.ends - base
    interleaved = pa.BinaryArray.from_buffers(
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data[base:])]
    )
    rows = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=nulls if nulls.any() else None)
    return pc.take(interleaved, rows, boundscheck=False)


def _text(binary: pa.Array) -> pa.Array:
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        # Not UTF-8: what cannot be decoded is replaced, as every client does.
        return pa.array([key.decode("utf-8", "replace") for key in binary.to_pylist()], pa.string())
