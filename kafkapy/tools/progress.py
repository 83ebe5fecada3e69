"""How far long work has come, for people who wait for it."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TextIO

from kafkapy.utils.terminal_block import TerminalBlock
from kafkapy.utils.time import SystemTime, Time

_INTERVAL_MS = 200


class Progress:
    """A line on standard error that is written over and gone at the end. For one thread.

    It is only there if standard error is a terminal: a pipe or a file gets nothing of it.
    """

    def __init__(
        self,
        label: str,
        total: int | None = None,
        *,
        stream: TextIO | None = None,
        time: Time | None = None,
    ) -> None:
        # constant after construction
        self._label = label
        self._total = total
        self._line = TerminalBlock(stream or sys.stderr)
        self._time = time or SystemTime()
        self._next_ms = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._line.clear()

    def update(self, done: int) -> None:
        """Cheap to call often: it writes a few times a second."""
        if not self._line.is_shown:
            return
        now_ms = self._time.hi_res_clock_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + _INTERVAL_MS
        part = f" of {self._total} ({100 * done // self._total}%)" if self._total else ""
        self._line.draw([f"{self._label}: {done}{part}"])
