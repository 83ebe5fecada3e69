"""What a pipeline does at the moment, for people at a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TextIO

from kafkapy.pipeline.jobs.progress.figures import duration, grouped, short
from kafkapy.pipeline.jobs.progress.query_progress import (
    PartitionProgress,
    QueryProgress,
    QueryRun,
)
from kafkapy.utils.terminal_block import TerminalBlock

_GAP = "   "


@dataclass(slots=True)
class _Seen:
    """What the view knows of one query since the process began."""

    state: str = "starting"
    last: QueryProgress | None = None
    rows_in: int = 0
    rows_out: int | None = None
    dead_letters: int = 0
    late_rows: int = 0

    def add(self, progress: QueryProgress) -> None:
        self.state = "running"
        self.last = progress
        self.rows_in += progress.rows_in
        if progress.rows_out is not None:
            self.rows_out = (self.rows_out or 0) + progress.rows_out
        self.dead_letters += progress.dead_letters
        self.late_rows += progress.late_rows


class TerminalView:
    """Three lines a query, drawn over after each batch; elsewhere than on a terminal, and if asked
    to be quiet, one line a batch. For one thread at a time.
    """

    def __init__(self, stream: TextIO, *, is_quiet: bool = False) -> None:
        # constant after construction
        self._stream = stream
        self._block = TerminalBlock(stream)
        self._is_live = self._block.is_shown and not is_quiet
        self._queries: dict[str, _Seen] = {}  # by name

    def on_started(self, query: QueryRun) -> None:
        self._queries.setdefault(query.name, _Seen()).state = "starting"
        self._draw()

    def on_progress(self, progress: QueryProgress) -> None:
        self._queries.setdefault(progress.query.name, _Seen()).add(progress)
        if self._is_live:
            self._draw()
        else:
            self._print(batch_line(progress))

    def on_idle(self, query: QueryRun) -> None:
        self._queries.setdefault(query.name, _Seen()).state = "waiting for data"
        self._draw()

    def on_terminated(self, query: QueryRun, error: str | None) -> None:
        self._queries.setdefault(query.name, _Seen()).state = "ended" if error is None else "failed"
        if error is not None and not self._is_live:
            self._print(f"{query.name} failed: {error}")
        self._draw()

    def close(self) -> None:
        """What was drawn last stays, and whatever is printed next begins below it."""
        if self._is_live and self._queries:
            self._print("")
            self._queries.clear()

    def _draw(self) -> None:
        if self._is_live:
            columns = self._block.size.columns
            self._block.draw(
                [
                    line
                    for name, seen in self._queries.items()
                    for line in _query_lines(name, seen, columns)
                ]
            )

    def _print(self, line: str) -> None:
        self._stream.write(f"{line}\n")
        self._stream.flush()


def batch_line(progress: QueryProgress) -> str:
    """One batch in one line, for logs and pipes."""
    began = datetime.fromtimestamp(progress.timestamp_ms // 1000, UTC)
    parts = [f"{grouped(progress.rows_in)} rows in"]
    if progress.rows_out is not None:
        parts.append(f"{grouped(progress.rows_out)} out")
    parts.append(f"{grouped(progress.processed_rows_per_second)} rows/s")
    parts.append(duration(progress.duration_ms))
    if progress.lag is not None:
        parts.append(f"lag {grouped(progress.lag)}")
    if progress.dead_letters:
        parts.append(f"{grouped(progress.dead_letters)} dead letters")
    if progress.late_rows:
        parts.append(f"{grouped(progress.late_rows)} too late")
    head = f"{began:%Y-%m-%dT%H:%M:%SZ} {progress.query.name} batch {progress.batch_id}"
    return f"{head}: {', '.join(parts)}"


def _query_lines(name: str, seen: _Seen, columns: int) -> list[str]:
    progress = seen.last
    if progress is None:
        return [f"{name}{_GAP}{seen.state}"]
    first = [name, seen.state, f"batch {progress.batch_id} took {duration(progress.duration_ms)}"]
    longest = max(progress.phases_ms.items(), key=lambda phase: phase[1], default=None)
    if longest is not None:
        first.append(f"{longest[0]} {duration(longest[1])}")
    second = [f"  in {grouped(seen.rows_in)} at {short(progress.input_rows_per_second)}/s"]
    if seen.rows_out is not None:
        second.append(f"out {grouped(seen.rows_out)}")
    second.append(f"done at {short(progress.processed_rows_per_second)}/s")
    if seen.dead_letters:
        second.append(f"dead letters {grouped(seen.dead_letters)}")
    if seen.late_rows:
        second.append(f"too late {grouped(seen.late_rows)}")
    lines = [_GAP.join(first), _GAP.join(second)]
    if progress.lag is not None:
        lines.append(_lag_line(progress, columns))
    return lines


def _lag_line(progress: QueryProgress, columns: int) -> str:
    """The partitions that lag most, as many as fit, and how many there are besides."""
    line = f"  lag {grouped(progress.lag or 0)}"
    by_lag = sorted(progress.partitions, key=_lag_of, reverse=True)
    for index, partition in enumerate(by_lag):
        shown = f"{_GAP}{partition.topic}-{partition.partition} {grouped(_lag_of(partition))}"
        left = len(by_lag) - index - 1
        more = f"{_GAP}+{left} more" if left else ""
        if len(line) + len(shown) + len(more) > columns:
            return f"{line}{_GAP}+{left + 1} more"
        line += shown
    return line


def _lag_of(partition: PartitionProgress) -> int:
    return partition.lag or 0
