"""Background work that runs later, or again and again."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Protocol

from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)


class ScheduledTask(Protocol):
    """What a caller can do with a task it has scheduled."""

    def cancel(self) -> None:
        """Never start it again; a run in progress goes on."""
        ...


class Scheduler(Protocol):
    """Runs named tasks in the background.

    Ports: org.apache.kafka.server.util.Scheduler
    """

    def startup(self) -> None: ...

    def shutdown(self) -> None: ...

    def schedule(
        self, name: str, task: Callable[[], None], *, delay_ms: int = 0, period_ms: int = -1
    ) -> ScheduledTask:
        """Run after `delay_ms`, then every `period_ms` when that is not negative."""
        ...

    def schedule_once(
        self, name: str, task: Callable[[], None], delay_ms: int = 0
    ) -> ScheduledTask: ...


class _Task:
    """One entry of the heap, ordered by due time, then by age."""

    __slots__ = ("_scheduler", "cancelled", "due_ns", "function", "name", "period_ns", "sequence")

    def __init__(
        self,
        scheduler: KafkaScheduler,
        name: str,
        function: Callable[[], None],
        *,
        due_ns: int,
        period_ns: int,
        sequence: int,
    ) -> None:
        self._scheduler = scheduler
        self.name = name
        self.function = function
        self.due_ns = due_ns
        self.period_ns = period_ns
        self.sequence = sequence
        self.cancelled = False

    def __lt__(self, other: _Task) -> bool:
        return (self.due_ns, self.sequence) < (other.due_ns, other.sequence)

    def cancel(self) -> None:
        self._scheduler._cancel(self)


class KafkaScheduler:
    """A pool of daemon threads running delayed and periodic tasks. Thread-safe.

    Periodic tasks keep a fixed rate and never overlap with themselves; a run that comes periods
    late stands for those it missed. One idle thread waits for
    the next due task and the others wait to take its place, so a due task wakes a single thread.

    Ports: org.apache.kafka.server.util.KafkaScheduler
    """

    def __init__(
        self, threads: int, time: Time, thread_name_prefix: str = "kafka-scheduler-"
    ) -> None:
        self._time = time  # constant after construction
        self._thread_name_prefix = thread_name_prefix
        self._sequence = itertools.count()
        self._thread_ids = itertools.count()
        self._available = threading.Condition(threading.Lock())
        # guarded by self._available
        self._size = threads
        self._started = False
        self._tasks: list[_Task] = []
        self._running = 0  # tasks
        self._leader: threading.Thread | None = None
        self._threads: set[threading.Thread] = set()

    def startup(self) -> None:
        with self._available:
            if self._started:
                raise RuntimeError("this scheduler has already been started")
            self._started = True
            self._start_threads_locked()
        self._time.add_listener(self)

    @property
    def is_started(self) -> bool:
        return self._started

    def shutdown(self) -> None:
        """Drop what has not started and wait for what has."""
        with self._available:
            self._started = False
            self._tasks.clear()
            self._available.notify_all()
            threads = list(self._threads)
        self._time.remove_listener(self)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()

    def resize_thread_pool(self, threads: int) -> None:
        with self._available:
            self._size = threads
            if self._started:
                self._start_threads_locked()
                self._available.notify_all()

    def schedule(
        self, name: str, task: Callable[[], None], *, delay_ms: int = 0, period_ms: int = -1
    ) -> ScheduledTask:
        scheduled = _Task(
            self,
            name,
            task,
            due_ns=self._time.nanoseconds() + delay_ms * 1_000_000,
            period_ns=period_ms * 1_000_000 if period_ms >= 0 else -1,
            sequence=next(self._sequence),
        )
        with self._available:
            if self._started:
                self._push_locked(scheduled)
            else:
                logger.info("The scheduler is not running, so task '%s' is left out", name)
                scheduled.cancelled = True
        return scheduled

    def schedule_once(
        self, name: str, task: Callable[[], None], delay_ms: int = 0
    ) -> ScheduledTask:
        return self.schedule(name, task, delay_ms=delay_ms)

    def pending_task_count(self) -> int:
        with self._available:
            return len(self._tasks)

    def clock_moved(self) -> None:
        with self._available:
            self._available.notify_all()

    def is_behind(self) -> bool:
        with self._available:
            return self._running > 0 or (
                bool(self._tasks) and self._tasks[0].due_ns <= self._time.nanoseconds()
            )

    def _cancel(self, task: _Task) -> None:
        with self._available:
            task.cancelled = True
            if task in self._tasks:
                self._tasks.remove(task)
                heapq.heapify(self._tasks)

    def _start_threads_locked(self) -> None:
        while len(self._threads) < self._size:
            thread = threading.Thread(
                target=self._run,
                name=f"{self._thread_name_prefix}{next(self._thread_ids)}",
                daemon=True,
            )
            self._threads.add(thread)
            thread.start()

    def _push_locked(self, task: _Task) -> None:
        heapq.heappush(self._tasks, task)
        if self._tasks[0] is task:
            # The leader waits for a later task: whoever wakes up takes its place.
            self._leader = None
            self._available.notify()

    def _run(self) -> None:
        while (task := self._take()) is not None:
            try:
                task.function()
            except Exception:
                logger.exception("Uncaught exception in scheduled task '%s'", task.name)
            with self._available:
                self._running -= 1
                if task.period_ns >= 0 and self._started and not task.cancelled:
                    task.due_ns = self._next_due_ns(task)
                    self._push_locked(task)

    def _next_due_ns(self, task: _Task) -> int:
        next_ns = task.due_ns + task.period_ns
        late_ns = self._time.nanoseconds() - next_ns
        # After a jump of the clock, or of the machine, not one run for each period slept through.
        if 0 < task.period_ns <= late_ns:
            next_ns += (late_ns // task.period_ns + 1) * task.period_ns
        return next_ns

    def _take(self) -> _Task | None:
        """The next task, when it is due; None when this thread is to end."""
        me = threading.current_thread()
        with self._available:
            while self._started and len(self._threads) <= self._size:
                if not self._tasks:
                    self._available.wait()
                    continue
                delay_ns = self._tasks[0].due_ns - self._time.nanoseconds()
                if delay_ns <= 0:
                    task = heapq.heappop(self._tasks)
                    self._running += 1
                    if self._leader is None and self._tasks:
                        self._available.notify()
                    return task
                if self._leader is not None:
                    self._available.wait()
                    continue
                self._leader = me
                try:
                    self._available.wait(delay_ns / 1_000_000_000)
                finally:
                    if self._leader is me:
                        self._leader = None
            self._threads.discard(me)
            if self._leader is None and self._tasks:
                self._available.notify()
            return None
