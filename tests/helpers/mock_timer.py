"""A timer without threads: expired tasks run inside `advance_clock`."""

from __future__ import annotations

import heapq
import itertools
import threading

from kafkapy.utils.timer import TimerTask, TimerTaskEntry
from tests.helpers.mock_time import MockTime


class MockTimer:
    """Ports: org.apache.kafka.server.util.timer.MockTimer"""

    def __init__(self, time: MockTime | None = None) -> None:
        self.time = time if time is not None else MockTime()
        self._lock = threading.Lock()
        self._sequence = itertools.count()
        self._entries: list[tuple[int, int, TimerTaskEntry]] = []
        self.closed = False

    @property
    def size(self) -> int:
        with self._lock:
            return sum(not entry.cancelled for _, _, entry in self._entries)

    def add(self, task: TimerTask) -> None:
        if task.delay_ms <= 0:
            task.run()
            return
        entry = TimerTaskEntry(task, task.delay_ms + self.time.hi_res_clock_ms(), self._cancel)
        task.timer_entry = entry
        with self._lock:
            heapq.heappush(self._entries, (entry.expiration_ms, next(self._sequence), entry))

    def advance_clock(self, timeout_ms: int) -> bool:
        self.time.sleep(timeout_ms)
        now_ms = self.time.hi_res_clock_ms()
        executed = False
        while (entry := self._take_due(now_ms)) is not None:
            executed = True
            entry.task.run()
        return executed

    def close(self) -> None:
        self.closed = True

    def _cancel(self, entry: TimerTaskEntry) -> None:
        entry.cancelled = True

    def _take_due(self, now_ms: int) -> TimerTaskEntry | None:
        with self._lock:
            while self._entries and self._entries[0][0] <= now_ms:
                entry = heapq.heappop(self._entries)[2]
                if not entry.cancelled:
                    return entry
        return None
