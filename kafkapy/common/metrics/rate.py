"""How fast a total grows."""

import threading
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from kafkapy.utils.time import Time

_WINDOW_NS = 60_000_000_000
_STEP_NS = 5_000_000_000


class _Point(NamedTuple):
    now_ns: int
    total: float


class Rate:
    """The growth of a total per nanosecond, over about the last minute. Thread-safe.

    Whoever grows the total pays nothing for it: the rate is made when somebody asks.

    Ports: org.apache.kafka.common.metrics.stats.Rate
    """

    def __init__(self, time: Time, total: Callable[[], float]) -> None:
        # constant after construction
        self._time = time
        self._total = total
        self._lock = threading.Lock()
        # What earlier readings saw, the oldest first. Guarded by self._lock.
        self._points = deque([self._now()])

    def per_nanosecond(self) -> float | None:
        """None when no time has passed since the beginning."""
        with self._lock:
            now = self._now()
            while len(self._points) > 1 and self._points[1].now_ns <= now.now_ns - _WINDOW_NS:
                self._points.popleft()
            start = self._points[0]
            if now.now_ns - self._points[-1].now_ns >= _STEP_NS:
                self._points.append(now)
        elapsed_ns = now.now_ns - start.now_ns
        return (now.total - start.total) / elapsed_ns if elapsed_ns > 0 else None

    def per_second(self) -> float:
        return (self.per_nanosecond() or 0.0) * 1_000_000_000

    def _now(self) -> _Point:
        return _Point(self._time.nanoseconds(), self._total())
