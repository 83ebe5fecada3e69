"""A scheduler without threads: tasks run on the thread that moves the clock."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable

from kafkapy.utils.time import Time


class MockTask:
    def __init__(
        self, name: str, function: Callable[[], None], *, due_ms: int, period_ms: int, sequence: int
    ) -> None:
        self.name = name
        self.function = function
        self.due_ms = due_ms
        self.period_ms = period_ms
        self.sequence = sequence
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def __lt__(self, other: MockTask) -> bool:
        return (self.due_ms, self.sequence) < (other.due_ms, other.sequence)


class MockScheduler:
    """Runs due tasks whenever `tick` is called; a task without delay runs inside `schedule`.

    Exceptions go to the caller: a test must see them.

    Ports: org.apache.kafka.server.util.MockScheduler
    """

    def __init__(self, time: Time) -> None:
        self._time = time
        self._lock = threading.Lock()
        self._tasks: list[MockTask] = []
        self._sequence = itertools.count()
        self.is_started = True

    def startup(self) -> None:
        self.is_started = True

    def shutdown(self) -> None:
        """Run every one-shot task once, as if its time had come."""
        self.is_started = False
        with self._lock:
            tasks, self._tasks = sorted(self._tasks), []
        for task in tasks:
            if task.period_ms < 0 and not task.cancelled:
                task.function()

    def schedule(
        self, name: str, task: Callable[[], None], *, delay_ms: int = 0, period_ms: int = -1
    ) -> MockTask:
        scheduled = MockTask(
            name,
            task,
            due_ms=self._time.hi_res_clock_ms() + delay_ms,
            period_ms=period_ms,
            sequence=next(self._sequence),
        )
        with self._lock:
            heapq.heappush(self._tasks, scheduled)
        self.tick()
        return scheduled

    def schedule_once(self, name: str, task: Callable[[], None], delay_ms: int = 0) -> MockTask:
        return self.schedule(name, task, delay_ms=delay_ms)

    def pending(self, name: str | None = None) -> list[MockTask]:
        """Tasks that wait, by name when one is given, soonest first."""
        with self._lock:
            return [
                task
                for task in sorted(self._tasks)
                if not task.cancelled and name in (None, task.name)
            ]

    def tick(self) -> None:
        now_ms = self._time.hi_res_clock_ms()
        while (task := self._take_due(now_ms)) is not None:
            task.function()
            if task.period_ms >= 0 and not task.cancelled:
                task.due_ms += max(task.period_ms, 1)
                with self._lock:
                    heapq.heappush(self._tasks, task)

    def _take_due(self, now_ms: int) -> MockTask | None:
        with self._lock:
            while self._tasks and self._tasks[0].due_ms <= now_ms:
                task = heapq.heappop(self._tasks)
                if not task.cancelled:
                    return task
        return None
