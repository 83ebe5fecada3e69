"""Progress of streaming queries, with defaults for what a test does not care about."""

from __future__ import annotations

import json
from typing import Any

from kafkapy.pipeline.jobs.progress.query_progress import (
    PartitionProgress,
    QueryProgress,
    QueryRun,
)

ARCHIVE = QueryRun("archive", "4daefcfe-1f81", "143e5ca0-afd3")
# 2026-11-16T09:21:52.757Z
BEGAN_MS = 1_794_820_912_757


def spark_json(**changes: Any) -> str:
    """A report in the shape that Spark 4.3 gives, of a stream to parquet."""
    report: dict[str, Any] = {
        "id": "4daefcfe-1f81-4474-a684-f36317c34b49",
        "runId": "143e5ca0-afd3-4ee2-8026-d294e5c6a648",
        "name": "archive",
        "timestamp": "2026-11-16T09:21:52.757Z",
        "batchId": 1,
        "batchDuration": 769,
        "numInputRows": 50,
        "inputRowsPerSecond": 5.0,
        "processedRowsPerSecond": 65.0,
        "durationMs": {
            "addBatch": 600,
            "commitOffsets": 68,
            "getBatch": 0,
            "latestOffset": 1,
            "queryPlanning": 31,
            "triggerExecution": 769,
            "walCommit": 62,
        },
        "stateOperators": [],
        "sources": [source()],
        "sink": {"description": "FileSink[file:/out]", "numOutputRows": -1},
    }
    return json.dumps(report | changes)


def source(
    start: dict[str, int] | None = None,
    end: dict[str, int] | None = None,
    latest: dict[str, int] | None = None,
) -> dict[str, Any]:
    """Of the topic `orders`, by format("kafkapy")."""
    start = start or {"0": 50, "1": 5}
    end = end or {"0": 100, "1": 5}
    latest = latest or {"0": 1000, "1": 7}
    return {
        "description": "PythonMicroBatchStreamWithAdmissionControl@3b10e216",
        "startOffset": {"topics": {"orders": {"id": "abc", "offsets": start}}},
        "endOffset": {"topics": {"orders": {"id": "abc", "offsets": end}}},
        "latestOffset": {"topics": {"orders": {"id": "abc", "offsets": latest}}},
        "numInputRows": 50,
        "inputRowsPerSecond": 5.0,
        "processedRowsPerSecond": 65.0,
    }


def progress(batch_id: int = 0, **changes: Any) -> QueryProgress:
    """A batch a second, each of 1000 rows, a second after the one before."""
    values: dict[str, Any] = {
        "query": ARCHIVE,
        "batch_id": batch_id,
        "timestamp_ms": BEGAN_MS + 1000 * batch_id,
        "duration_ms": 1000,
        "phases_ms": {"addBatch": 800, "walCommit": 150},
        "rows_in": 1000,
        "rows_out": 990,
        "input_rows_per_second": 950.0,
        "processed_rows_per_second": 1000.0,
        "partitions": (partition(0, 300), partition(1, 20)),
    }
    return QueryProgress(**(values | changes))


def partition(number: int, lag: int | None, topic: str = "orders") -> PartitionProgress:
    return PartitionProgress(topic, number, 0, 100, None if lag is None else 100 + lag)
