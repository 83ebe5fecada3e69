"""A query's history in a few figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kafkapy.pipeline.jobs.progress.figures import duration, grouped, short
from kafkapy.pipeline.jobs.report.query_history import QueryHistory

UNKNOWN = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure, what it is of, and a word on it."""

    label: str
    value: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class QuerySummary:
    """Sums and extremes over all runs of a query."""

    name: str
    state: str
    is_failed: bool
    start_ms: int
    end_ms: int
    runs: int
    failures: int
    down_ms: int
    rows_in: int
    rows_out: int | None
    dead_letters: int
    late_rows: int
    batches: int
    busy_ms: int
    median_batch_ms: float
    p95_batch_ms: float
    slowest_batch_ms: int
    last_lag: int | None
    peak_lag: int | None

    @classmethod
    def of(cls, history: QueryHistory) -> QuerySummary:
        batches = history.batches
        counted = [batch.rows_out for batch in batches if batch.rows_out is not None]
        lags = [batch.lag for batch in batches if batch.lag is not None]
        durations = sorted(batch.duration_ms for batch in batches)
        last_run = history.runs[-1]
        return cls(
            name=history.name,
            state=last_run.ending,
            is_failed=last_run.error is not None,
            start_ms=history.start_ms,
            end_ms=history.end_ms,
            runs=len(history.runs),
            failures=sum(run.error is not None for run in history.runs),
            down_ms=sum(
                max(0, after.start_ms - before.end_ms) for before, after in pairwise(history.runs)
            ),
            rows_in=sum(batch.rows_in for batch in batches),
            rows_out=sum(counted) if counted else None,
            dead_letters=sum(batch.dead_letters for batch in batches),
            late_rows=sum(batch.late_rows for batch in batches),
            batches=len(batches),
            busy_ms=sum(durations),
            median_batch_ms=quantile(durations, 0.5),
            p95_batch_ms=quantile(durations, 0.95),
            slowest_batch_ms=durations[-1] if durations else 0,
            last_lag=lags[-1] if lags else None,
            peak_lag=max(lags) if lags else None,
        )

    @property
    def rows_per_second(self) -> float:
        """While a batch was at work: waiting for data is not slowness."""
        return 1000 * self.rows_in / self.busy_ms if self.busy_ms else 0.0

    def tiles(self) -> list[Tile]:
        lost = [f"{grouped(self.dead_letters)} dead letters"]
        if self.late_rows:
            lost.append(f"{grouped(self.late_rows)} too late")
        runs = [f"{self.failures} failed"] if self.failures else []
        runs.append(f"{duration(self.down_ms)} down" if self.runs > 1 else "no restart")
        return [
            Tile("Rows in", short(self.rows_in), grouped(self.rows_in)),
            Tile(
                "Rows out",
                UNKNOWN if self.rows_out is None else short(self.rows_out),
                ", ".join(lost) if self.rows_out is not None else "not counted by the sink",
            ),
            Tile("Rows a second", short(self.rows_per_second), "while at work"),
            Tile("Batches", grouped(self.batches), f"95% within {duration(self.p95_batch_ms)}"),
            Tile(
                "Lag at the end",
                UNKNOWN if self.last_lag is None else short(self.last_lag),
                "not known" if self.peak_lag is None else f"{grouped(self.peak_lag)} at most",
            ),
            Tile("Runs", grouped(self.runs), ", ".join(runs)),
        ]


def quantile(ordered: Sequence[float], q: float) -> float:
    """The value that a part `q` of them does not exceed; 0 of none."""
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)] if ordered else 0.0
