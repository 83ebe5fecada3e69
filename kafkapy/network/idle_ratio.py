"""How much of their time threads spend waiting."""

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kafkapy.utils.time import Time

_WINDOW_NS = 60_000_000_000
_STEP_NS = 5_000_000_000


class _Point(NamedTuple):
    now_ns: int
    waited_ns: float


class IdleRatio:
    """The share of about the last minute that was spent waiting. Thread-safe.

    The threads only add up what they have waited; the ratio is made when somebody asks.
    """

    def __init__(self, time: Time, total_waited_ns: Callable[[], float]) -> None:
        # constant after construction
        self._time = time
        self._total_waited_ns = total_waited_ns
        self._lock = threading.Lock()
        # What earlier readings saw, the oldest first. Guarded by self._lock.
        self._points = deque([self._now()])

    def value(self) -> float:
        """Between 0.0 (always busy) and 1.0 (always waiting)."""
        with self._lock:
            now = self._now()
            while len(self._points) > 1 and self._points[1].now_ns <= now.now_ns - _WINDOW_NS:
                self._points.popleft()
            start = self._points[0]
            if now.now_ns - self._points[-1].now_ns >= _STEP_NS:
                self._points.append(now)
        elapsed_ns = now.now_ns - start.now_ns
        if elapsed_ns <= 0:
            return 1.0
        return min(1.0, (now.waited_ns - start.waited_ns) / elapsed_ns)

    def _now(self) -> _Point:
        return _Point(self._time.nanoseconds(), self._total_waited_ns())
