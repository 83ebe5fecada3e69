"""What a progress log tells of each query: its runs, their batches, and how they ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kafkapy.pipeline.jobs.progress.progress_log import (
    LoggedEvent,
    QueryStarted,
    QueryTerminated,
)
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress


@dataclass(slots=True)
class Run:
    """From one start of a query to its end, or to the last that was heard of it."""

    run_id: str
    start_ms: int
    end_ms: int
    batches: list[QueryProgress] = field(default_factory=list)
    is_terminated: bool = False
    error: str | None = None

    def add(self, event: LoggedEvent) -> None:
        match event:
            case QueryStarted(timestamp_ms=at):
                self.start_ms = min(self.start_ms, at)
            case QueryTerminated(timestamp_ms=at, error=error):
                self.end_ms = max(self.end_ms, at)
                self.is_terminated = True
                self.error = error
            case QueryProgress() as batch:
                self.start_ms = min(self.start_ms, batch.timestamp_ms)
                self.end_ms = max(self.end_ms, batch.end_ms)
                self.batches.append(batch)

    @property
    def ending(self) -> str:
        if self.error is not None:
            return f"failed: {self.error}"
        return "was stopped" if self.is_terminated else "has no end in the log"


@dataclass(frozen=True, slots=True)
class QueryHistory:
    """All runs of the queries of one name, in their order; at least one."""

    name: str
    runs: tuple[Run, ...]

    @property
    def start_ms(self) -> int:
        return self.runs[0].start_ms

    @property
    def end_ms(self) -> int:
        return max(run.end_ms for run in self.runs)

    @property
    def batches(self) -> list[QueryProgress]:
        return [batch for run in self.runs for batch in run.batches]


def query_histories(events: Iterable[LoggedEvent]) -> list[QueryHistory]:
    """One for each name, in the order in which the log has them."""
    runs: dict[str, dict[str, Run]] = {}
    for event in events:
        query = event.query
        at_ms = event.timestamp_ms
        known = runs.setdefault(query.name, {})
        known.setdefault(query.run_id, Run(query.run_id, at_ms, at_ms)).add(event)
    return [
        QueryHistory(name, tuple(sorted(of_query.values(), key=lambda run: run.start_ms)))
        for name, of_query in runs.items()
    ]
