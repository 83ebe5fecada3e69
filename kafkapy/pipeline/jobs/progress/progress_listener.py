"""Spark's events of streaming queries, for the pipeline's reporters."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from kafkapy.pipeline.jobs.failure_cause import failure_cause
from kafkapy.pipeline.jobs.progress.progress_reporter import ProgressReporter
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress, QueryRun

log = logging.getLogger(__name__)

# Spark hands events on within milliseconds; a driver that is going down may never do it.
_LAST_EVENTS_TIMEOUT_S = 5.0


class ProgressListener(StreamingQueryListener):
    """Hands each event to every reporter. Thread-safe: Spark calls from threads of its own.

    A reporter that fails is named in the log, the others are told all the same and the query goes
    on: an exception that left here would only be one of many lines in Spark's own log.
    """

    def __init__(self, reporters: Sequence[ProgressReporter]) -> None:
        self._reporters = tuple(reporters)  # constant after construction
        self._changed = threading.Condition()
        # guarded by self._changed
        self._running: dict[str, QueryRun] = {}
        self._failed: set[int] = set()
        self._is_closed = False

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        query = QueryRun.of(event.name, event.id, event.runId)
        with self._changed:
            self._running[query.run_id] = query
            self._tell_locked(lambda reporter: reporter.on_started(query))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        text = event.progress.json
        try:
            progress = QueryProgress.of_spark(text)
        except (KeyError, TypeError, ValueError):
            log.exception("Spark's report of a batch cannot be understood: %s", text)
            return
        self.on_progress(progress)

    def on_progress(self, progress: QueryProgress) -> None:
        """Also for work that Spark does not report on, such as a plain batch read."""
        with self._changed:
            self._tell_locked(lambda reporter: reporter.on_progress(progress))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        with self._changed:
            query = self._running.get(str(event.runId))
            if query is not None:
                self._tell_locked(lambda reporter: reporter.on_idle(query))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        error = None if event.exception is None else failure_cause(event.exception)
        run_id = str(event.runId)
        with self._changed:
            query = self._running.pop(run_id, None) or QueryRun.of(None, event.id, run_id)
            self._tell_locked(lambda reporter: reporter.on_terminated(query, error))
            self._changed.notify_all()

    def close(self, timeout_s: float = _LAST_EVENTS_TIMEOUT_S) -> None:
        """Call it when the queries have ended: it waits for the last of their events, which come
        later than the end, and closes the reporters.
        """
        with self._changed:
            if self._is_closed:
                return
            if not self._changed.wait_for(lambda: not self._running, timeout_s):
                names = ", ".join(sorted(query.name for query in self._running.values()))
                log.warning("Spark has not reported the end of %s", names)
            self._tell_locked(lambda reporter: reporter.close())
            self._is_closed = True

    def _tell_locked(self, event: Callable[[ProgressReporter], None]) -> None:
        """Reporters are called under the lock: each takes one event at a time, in their order."""
        if self._is_closed:
            return
        for number, reporter in enumerate(self._reporters):
            try:
                event(reporter)
            except Exception as e:
                # A full disk fails every batch alike: the trace is of use once.
                is_first = number not in self._failed
                self._failed.add(number)
                log.error("%s failed: %s", type(reporter).__name__, e, exc_info=is_first)
