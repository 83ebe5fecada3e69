"""The progress log: one line of JSON for everything that happens to a pipeline's queries.

    {"event": "started", "timestamp_ms": …, "query": "archive", "query_id": "…", "run_id": "…"}
    {"event": "progress", … the fields of QueryProgress …}
    {"event": "terminated", "timestamp_ms": …, "query": …, …, "error": null}

A line is written by one call, so a process that is killed leaves at most one torn line, the last;
whoever opens the log next for writing cuts it off, and readers pass over it. A log that grows
beyond its size becomes `PATH.1`, that one `PATH.2`, and so on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress, QueryRun
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.utils.time import Time

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
DEFAULT_BACKUPS = 3
_TAIL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class QueryStarted:
    query: QueryRun
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class QueryTerminated:
    query: QueryRun
    timestamp_ms: int
    error: str | None


LoggedEvent = QueryStarted | QueryProgress | QueryTerminated


class ProgressLog:
    """Appends to the log. For one thread at a time, and one process."""

    def __init__(
        self,
        path: Path,
        time: Time,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        backups: int = DEFAULT_BACKUPS,
    ) -> None:
        # constant after construction
        self._path = path
        self._time = time
        self._max_bytes = max_bytes
        self._backups = backups
        self._descriptor = -1
        self._size = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open()
        except OSError as e:
            raise PipelineError(f"{path}: the progress log cannot be written: {e.strerror}") from e

    def on_started(self, query: QueryRun) -> None:
        self._append("started", self._now(query))

    def on_progress(self, progress: QueryProgress) -> None:
        self._append("progress", progress.fields())

    def on_idle(self, query: QueryRun) -> None:
        """Not kept: a log would grow by it where nothing happens."""

    def on_terminated(self, query: QueryRun, error: str | None) -> None:
        self._append("terminated", self._now(query) | {"error": error})

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _now(self, query: QueryRun) -> dict[str, Any]:
        return {
            "timestamp_ms": self._time.milliseconds(),
            "query": query.name,
            "query_id": query.query_id,
            "run_id": query.run_id,
        }

    def _append(self, event: str, fields: dict[str, Any]) -> None:
        line = json.dumps({"event": event} | fields, separators=(",", ":")).encode() + b"\n"
        if self._descriptor < 0:  # the last rotation failed half-way
            self._open()
        if self._size and self._size + len(line) > self._max_bytes:
            self._rotate()
        written = os.write(self._descriptor, line)
        if written < len(line):
            os.ftruncate(self._descriptor, self._size)
            raise OSError(f"{self._path}: no room for a line of the progress log")
        self._size += written

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self._path, flags, 0o644)
        size = os.fstat(self._descriptor).st_size
        self._size = _end_of_whole_lines(self._descriptor, size)
        if self._size < size:
            os.ftruncate(self._descriptor, self._size)

    def _rotate(self) -> None:
        self.close()
        if not self._backups:
            self._path.unlink()
        for number in range(self._backups, 0, -1):
            newer = rotated(self._path, number - 1)
            if newer.exists():
                newer.replace(rotated(self._path, number))
        self._open()


def rotated(path: Path, number: int) -> Path:
    """The log `number` rotations ago."""
    return path.with_name(f"{path.name}.{number}") if number else path


def read_progress_log(path: Path) -> Iterator[LoggedEvent]:
    """Everything from the oldest rotated log on; lines of Spark's own progress JSON are taken too.

    Raises PipelineError for a line that is no event, unless it is the torn one at the end.
    """
    if not path.is_file():
        raise PipelineError(f"{path}: there is no such progress log")
    number = 0
    while rotated(path, number + 1).is_file():
        number += 1
    for age in range(number, -1, -1):
        yield from _read_file(rotated(path, age))


def _read_file(path: Path) -> Iterator[LoggedEvent]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            if line.isspace():
                continue
            try:
                yield _event_of(json.loads(line))
            except (ValueError, KeyError, TypeError) as e:
                raise PipelineError(
                    f"{path}, line {number}: not an event of a progress log ({e!r})"
                ) from e


def _event_of(fields: Any) -> LoggedEvent:
    if not isinstance(fields, dict):
        raise TypeError("no JSON object")
    if "event" not in fields:
        return QueryProgress.of_spark(fields)
    event = fields.pop("event")
    if event == "progress":
        return QueryProgress.of_fields(fields)
    query = QueryRun(fields["query"], fields["query_id"], fields["run_id"])
    if event == "started":
        return QueryStarted(query, fields["timestamp_ms"])
    if event == "terminated":
        return QueryTerminated(query, fields["timestamp_ms"], fields["error"])
    raise ValueError(f"event {event}")


def _end_of_whole_lines(descriptor: int, size: int) -> int:
    """The size of the file up to and with its last newline."""
    end = size
    while end > 0:
        start = max(0, end - _TAIL_BYTES)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
