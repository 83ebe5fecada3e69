"""Reading segments as Spark does, without Spark."""

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from kafkapy.pipeline.segments.segment_data_source import SegmentDataSource
from tests.helpers.written_topics import Row


def segment_batches(
    path: str | Path, *, columns: StructType | None = None, **options: Any
) -> list[pa.RecordBatch]:
    """One list for all splits; what Spark pickles is pickled."""
    given = {"path": str(path)} | {
        name: json.dumps(value) if isinstance(value, dict) else str(value)
        for name, value in options.items()
    }
    source = SegmentDataSource(given)
    reader = pickle.loads(pickle.dumps(source.reader(columns or source.schema())))
    return [
        batch
        for split in reader.partitions()
        for batch in reader.read(pickle.loads(pickle.dumps(split)))
    ]


def segment_rows(path: str | Path, **options: Any) -> list[Row]:
    """As `consumed` has them, headers included."""
    return [
        (
            *(row[name] for name in ("key", "value", "topic", "partition", "offset")),
            round(row["timestamp"].timestamp() * 1000),
            row["timestampType"],
            row["headers"] and [(header["key"], header["value"]) for header in row["headers"]],
        )
        for batch in segment_batches(path, includeHeaders=True, **options)
        for row in batch.to_pylist()
    ]
