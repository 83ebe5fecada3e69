"""What one micro-batch of a streaming query did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.jobs.progress.source_offsets import offsets_by_partition

# Columns of an observed metric (DataFrame.observe), of whatever name, that a pipeline's query sets:
# Spark itself does not count the rows that a file or a foreachBatch sink was given.
ROWS_OUT_COLUMN = "rows_out"
DEAD_LETTERS_COLUMN = "dead_letters"

_WHOLE_BATCH = "triggerExecution"


@dataclass(frozen=True, slots=True)
class QueryRun:
    """One run of a query: its id stays over restarts from one checkpoint, its run id does not."""

    name: str
    query_id: str
    run_id: str

    @classmethod
    def of(cls, name: str | None, query_id: object, run_id: object) -> QueryRun:
        """A query without a name goes by the start of its id."""
        return cls(name or str(query_id).partition("-")[0], str(query_id), str(run_id))


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far a batch has come in one partition. Offsets are of the next record."""

    topic: str
    partition: int
    start_offset: int | None  # None in a query's first batch
    end_offset: int
    latest_offset: int | None  # None if the source does not say

    @property
    def lag(self) -> int | None:
        if self.latest_offset is None:
            return None
        return max(0, self.latest_offset - self.end_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProgress:
    """One micro-batch: what it read and wrote, how long it took and what it left to do."""

    query: QueryRun
    batch_id: int
    timestamp_ms: int  # when the batch began
    duration_ms: int
    phases_ms: Mapping[str, int] = field(default_factory=dict)  # parts of it, by Spark's names
    rows_in: int
    rows_out: int | None = None  # None if nobody counted
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    partitions: tuple[PartitionProgress, ...] = ()
    watermark_ms: int | None = None
    state_rows: int = 0
    late_rows: int = 0  # dropped, since they came behind the watermark
    dead_letters: int = 0

    @property
    def end_ms(self) -> int:
        return self.timestamp_ms + self.duration_ms

    @property
    def lag(self) -> int | None:
        """Of all partitions whose end is known; None if there is none."""
        lags = [p.lag for p in self.partitions if p.lag is not None]
        return sum(lags) if lags else None

    @classmethod
    def of_spark(cls, progress: str | Mapping[str, Any]) -> QueryProgress:
        """From the JSON of Spark's StreamingQueryProgress, which leaves out what it cannot say."""
        said: Mapping[str, Any] = json.loads(progress) if isinstance(progress, str) else progress
        durations = dict(said.get("durationMs", {}))
        duration_ms = durations.pop(_WHOLE_BATCH, 0)
        states = said.get("stateOperators", ())
        return cls(
            query=QueryRun.of(said.get("name"), said["id"], said["runId"]),
            batch_id=said["batchId"],
            timestamp_ms=_milliseconds(said["timestamp"]),
            duration_ms=said.get("batchDuration", duration_ms),
            phases_ms=durations,
            rows_in=said.get("numInputRows", 0),
            rows_out=_rows_out(said),
            input_rows_per_second=said.get("inputRowsPerSecond", 0.0),
            processed_rows_per_second=said.get("processedRowsPerSecond", 0.0),
            partitions=_partitions(said.get("sources", ())),
            # Spark's watermark is the epoch until the first batch has given it another.
            watermark_ms=_milliseconds(said.get("eventTime", {}).get("watermark")) or None,
            state_rows=sum(state["numRowsTotal"] for state in states),
            late_rows=sum(state.get("numRowsDroppedByWatermark", 0) for state in states),
            dead_letters=_observed(said, DEAD_LETTERS_COLUMN) or 0,
        )

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> QueryProgress:
        """The inverse of `fields`."""
        rest = dict(fields)
        query = QueryRun(rest.pop("query"), rest.pop("query_id"), rest.pop("run_id"))
        partitions = tuple(PartitionProgress(**partition) for partition in rest.pop("partitions"))
        return cls(query=query, partitions=partitions, **rest)

    def fields(self) -> dict[str, Any]:
        """For JSON: one flat object and a list of partitions."""
        own = {name: getattr(self, name) for name in self.__slots__}
        return own | {
            "query": self.query.name,
            "query_id": self.query.query_id,
            "run_id": self.query.run_id,
            "phases_ms": dict(self.phases_ms),
            "partitions": [
                {name: getattr(partition, name) for name in partition.__slots__}
                for partition in self.partitions
            ],
        }


def _milliseconds(timestamp: str | None) -> int:
    if timestamp is None:
        return 0
    return round(datetime.fromisoformat(timestamp).timestamp() * 1000)


def _rows_out(said: Mapping[str, Any]) -> int | None:
    """A count of the pipeline's own goes first: a sink of Spark's may not know (-1)."""
    observed = _observed(said, ROWS_OUT_COLUMN)
    if observed is not None:
        return observed
    counted: int = said.get("sink", {}).get("numOutputRows", -1)
    return counted if counted >= 0 else None


def _observed(said: Mapping[str, Any], column: str) -> int | None:
    counts = [
        row[column]
        for row in said.get("observedMetrics", {}).values()
        if row is not None and row.get(column) is not None
    ]
    return sum(counts) if counts else None


def _partitions(sources: Sequence[Mapping[str, Any]]) -> tuple[PartitionProgress, ...]:
    """A partition that two sources of a query read counts once, by the one that is behind."""
    found: dict[TopicPartition, PartitionProgress] = {}
    for source in sources:
        starts = offsets_by_partition(source.get("startOffset"))
        latest = offsets_by_partition(source.get("latestOffset"))
        for key, end in offsets_by_partition(source.get("endOffset")).items():
            known = found.get(key)
            if known is None or end < known.end_offset:
                found[key] = PartitionProgress(
                    key.topic, key.partition, starts.get(key), end, latest.get(key)
                )
    return tuple(found[key] for key in sorted(found))
