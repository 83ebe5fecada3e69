"""Whoever shows or keeps what the queries of a pipeline do."""

from __future__ import annotations

from typing import Protocol

from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress, QueryRun


class ProgressReporter(Protocol):
    """Told of everything that happens to the queries, by one thread at a time.

    It may raise: the one who calls it says so in the log and goes on.
    """

    def on_started(self, query: QueryRun) -> None: ...

    def on_progress(self, progress: QueryProgress) -> None:
        """After each micro-batch."""
        ...

    def on_idle(self, query: QueryRun) -> None:
        """Nothing has come for a while; the last progress still holds."""
        ...

    def on_terminated(self, query: QueryRun, error: str | None) -> None:
        """`error` is one line, None if the query was stopped or had come to its end."""
        ...

    def close(self) -> None: ...
