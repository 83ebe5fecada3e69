"""Keeps a misbehaving peer from filling the log."""

import logging

from kafkapy.utils.time import Time

_WINDOW_NS = 1_000_000_000


class LogLimiter:
    """Lets so many lines a second through and counts the rest. For one thread."""

    def __init__(self, logger: logging.Logger, time: Time, *, lines_per_second: int = 20) -> None:
        self._logger = logger
        self._time = time
        self._lines_per_second = lines_per_second
        self._window_start_ns = time.nanoseconds()
        self._lines = 0
        self._suppressed = 0

    def warning(self, message: str, *args: object) -> None:
        now_ns = self._time.nanoseconds()
        if now_ns - self._window_start_ns >= _WINDOW_NS:
            if self._suppressed:
                self._logger.warning("%d more lines like the last were left out", self._suppressed)
            self._window_start_ns = now_ns
            self._lines = 0
            self._suppressed = 0
        if self._lines < self._lines_per_second:
            self._lines += 1
            self._logger.warning(message, *args)
        else:
            self._suppressed += 1
