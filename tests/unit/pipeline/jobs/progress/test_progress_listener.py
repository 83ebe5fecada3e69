import json
import logging
import threading
from uuid import UUID

import pytest
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from kafkapy.pipeline.jobs.progress.progress_listener import ProgressListener
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress, QueryRun
from tests.helpers.query_progress import spark_json

QUERY_ID = UUID("4daefcfe-1f81-4474-a684-f36317c34b49")
RUN_ID = UUID("143e5ca0-afd3-4ee2-8026-d294e5c6a648")
ARCHIVE = QueryRun("archive", str(QUERY_ID), str(RUN_ID))
AT = "2026-11-16T09:21:52.757Z"

STARTED = QueryStartedEvent(QUERY_ID, RUN_ID, "archive", AT, set())
IDLE = QueryIdleEvent(QUERY_ID, RUN_ID, AT)
ENDED = QueryTerminatedEvent(QUERY_ID, RUN_ID, None, None)


def batch_event(**changes: object) -> QueryProgressEvent:
    defaults = {"description": "", "startOffset": "", "endOffset": "", "latestOffset": ""}
    report = json.loads(spark_json(**changes))
    report["sources"] = [defaults | source for source in report["sources"]]
    return QueryProgressEvent.fromJson({"progress": report})


class _Recorder:
    """Keeps what it is told, and fails on it if asked to."""

    def __init__(self, *, is_broken: bool = False) -> None:
        self.told: list[object] = []
        self._is_broken = is_broken

    def on_started(self, query: QueryRun) -> None:
        self._keep(("started", query))

    def on_progress(self, progress: QueryProgress) -> None:
        self._keep(progress)

    def on_idle(self, query: QueryRun) -> None:
        self._keep(("idle", query))

    def on_terminated(self, query: QueryRun, error: str | None) -> None:
        self._keep(("terminated", query, error))

    def close(self) -> None:
        self._keep("closed")

    def _keep(self, event: object) -> None:
        self.told.append(event)
        if self._is_broken:
            raise OSError("no space left")


def test_reporters_are_told_of_everything_in_order() -> None:
    recorder = _Recorder()
    listener = ProgressListener([recorder])

    listener.onQueryStarted(STARTED)
    listener.onQueryProgress(batch_event())
    listener.onQueryIdle(IDLE)
    listener.onQueryTerminated(ENDED)
    listener.close()

    assert recorder.told == [
        ("started", ARCHIVE),
        QueryProgress.of_spark(spark_json()),
        ("idle", ARCHIVE),
        ("terminated", ARCHIVE, None),
        "closed",
    ]


def test_a_reporter_that_fails_is_named_in_the_log_and_keeps_nothing_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken, sound = _Recorder(is_broken=True), _Recorder()
    listener = ProgressListener([broken, sound])

    with caplog.at_level(logging.ERROR):
        listener.onQueryProgress(batch_event())
        listener.onQueryProgress(batch_event(batchId=2))

    assert len(broken.told) == len(sound.told) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "_Recorder failed: no space left"
    ] * 2
    assert [bool(record.exc_info) for record in caplog.records] == [True, False]


def test_a_report_that_cannot_be_understood_is_in_the_log_and_does_no_harm(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = _Recorder()
    listener = ProgressListener([recorder])

    listener.onQueryProgress(batch_event(timestamp="yesterday"))

    assert recorder.told == []
    assert "cannot be understood" in caplog.text


def test_closing_waits_for_the_end_of_every_query_to_be_reported() -> None:
    recorder = _Recorder()
    listener = ProgressListener([recorder])
    listener.onQueryStarted(STARTED)
    closing = threading.Thread(target=listener.close, args=(30,))
    closing.start()

    listener.onQueryTerminated(ENDED)
    closing.join()

    assert recorder.told[1:] == [("terminated", ARCHIVE, None), "closed"]


def test_closing_does_not_wait_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    recorder = _Recorder()
    listener = ProgressListener([recorder])
    listener.onQueryStarted(STARTED)

    listener.close(0)
    listener.close(0)
    listener.onQueryTerminated(ENDED)

    assert recorder.told == [("started", ARCHIVE), "closed"]
    assert "Spark has not reported the end of archive" in caplog.text


def test_the_end_by_an_error_is_told_in_one_line() -> None:
    recorder = _Recorder()
    listener = ProgressListener([recorder])
    trace = "java.io.IOException: disk full\n\tat a.b.C.d(C.java:1)\n"

    listener.onQueryStarted(STARTED)
    listener.onQueryTerminated(QueryTerminatedEvent(QUERY_ID, RUN_ID, trace, None))

    assert recorder.told[1:] == [("terminated", ARCHIVE, "java.io.IOException: disk full")]
