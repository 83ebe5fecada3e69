"""Rows as the broker's own decoder gives them, and as the columns hold them."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.columnar.record_columns_decoder import RecordColumnsDecoder
from kafkapy.pipeline.columnar.record_schema import RecordSchema, spark_schema

ORDERS = TopicPartition("orders", 3)
ALL_COLUMNS = RecordSchema.of_spark(spark_schema(include_headers=True))
NO_END = 2**63 - 1

Row = tuple[Any, ...]


def expected_rows(source: MemoryRecords, start: int = 0, end: int = NO_END) -> list[Row]:
    """Of all but control batches, in the columns' order."""
    return [
        (
            record.key,
            record.value,
            *ORDERS,
            record.offset,
            record.timestamp * 1000,
            int(batch.timestamp_type),
            list(record.headers) or None,
        )
        for batch in source.batches()
        if not batch.is_control_batch
        for record in batch.records()
        if start <= record.offset < end
    ]


def rows(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    """Timestamps as microseconds, headers as pairs; checks that Arrow finds the batches sound."""
    found: list[Row] = []
    for batch in batches:
        batch.validate(full=True)
        columns = {
            name: (
                column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
            ).to_pylist()
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        if "headers" in columns:
            columns["headers"] = [
                headers and [(header["key"], header["value"]) for header in headers]
                for headers in columns["headers"]
            ]
        found.extend(zip(*columns.values(), strict=True))
    return found


def decoder(schema: RecordSchema = ALL_COLUMNS, **changes: Any) -> RecordColumnsDecoder:
    """Of all offsets unless told otherwise."""
    ranges = {"start_offset": 0, "end_offset": NO_END}
    return RecordColumnsDecoder(ORDERS, schema, **(ranges | changes))


def decoded_batches(source: MemoryRecords, **changes: Any) -> list[pa.RecordBatch]:
    """All record batches of a buffer."""
    reading = decoder(**changes)
    return [*reading.decode(source.buffer), *reading.finish()]


def decoded(source: MemoryRecords, **changes: Any) -> list[Row]:
    """All rows of a buffer."""
    return rows(decoded_batches(source, **changes))
