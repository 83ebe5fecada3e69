"""Hierarchical timing wheels: adding and cancelling a time-out costs O(1).

A wheel is a ring of `wheel_size` buckets, each covering `tick_ms`; it spans
`interval = tick_ms * wheel_size` from its current time. What expires later goes to the overflow
wheel, whose tick is this wheel's interval. When a bucket of an overflow wheel comes due, its
tasks are put in again and land in a finer wheel, until the finest one lets them run. Buckets, not
tasks, wait in a heap, so nothing has to turn while nothing is due.
"""

from __future__ import annotations

import heapq
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)


class TimerTask(ABC):
    """Work to do when `delay_ms` have passed, unless cancelled before.

    Ports: org.apache.kafka.server.util.timer.TimerTask
    """

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.timer_entry: TimerTaskEntry | None = None

    @abstractmethod
    def run(self) -> None: ...

    def cancel(self) -> None:
        entry = self.timer_entry
        if entry is not None:
            self.timer_entry = None
            entry.cancel()


class Timer(Protocol):
    """The seam between time-outs and the clock.

    Ports: org.apache.kafka.server.util.timer.Timer
    """

    def add(self, task: TimerTask) -> None: ...

    def advance_clock(self, timeout_ms: int) -> bool:
        """Wait up to `timeout_ms` for something to expire; whether something did."""
        ...

    @property
    def size(self) -> int:
        """Tasks waiting."""
        ...

    def close(self) -> None: ...


class TimerTaskEntry:
    """One task in one timer.

    Ports: org.apache.kafka.server.util.timer.TimerTaskEntry
    """

    __slots__ = ("_on_cancel", "bucket", "cancelled", "expiration_ms", "task")

    def __init__(
        self,
        task: TimerTask,
        expiration_ms: int,
        on_cancel: Callable[[TimerTaskEntry], None],
    ) -> None:
        self.task = task
        self.expiration_ms = expiration_ms
        self.bucket: TimerTaskList | None = None  # guarded by the timer's lock
        self.cancelled = False
        self._on_cancel = on_cancel

    def cancel(self) -> None:
        self._on_cancel(self)


class TimerTaskList:
    """One bucket of a wheel. Guarded by its timer's lock.

    Ports: org.apache.kafka.server.util.timer.TimerTaskList
    """

    __slots__ = ("entries", "expiration_ms")

    def __init__(self) -> None:
        self.entries: dict[TimerTaskEntry, None] = {}
        self.expiration_ms = -1

    def add(self, entry: TimerTaskEntry) -> None:
        self.entries[entry] = None
        entry.bucket = self

    def remove(self, entry: TimerTaskEntry) -> None:
        self.entries.pop(entry, None)
        entry.bucket = None

    def set_expiration(self, expiration_ms: int) -> bool:
        """Whether that is news, so that the bucket must be queued again."""
        if self.expiration_ms == expiration_ms:
            return False
        self.expiration_ms = expiration_ms
        return True

    def take_all(self) -> list[TimerTaskEntry]:
        entries = list(self.entries)
        self.entries.clear()
        self.expiration_ms = -1
        for entry in entries:
            entry.bucket = None
        return entries


class TimingWheel:
    """One ring of buckets and, from the first need, the coarser ring above it.

    Not thread-safe: its timer's lock guards it. `enqueue` is called with a bucket whenever the
    bucket gets a new expiration.

    Ports: org.apache.kafka.server.util.timer.TimingWheel
    """

    def __init__(
        self,
        tick_ms: int,
        wheel_size: int,
        start_ms: int,
        *,
        enqueue: Callable[[TimerTaskList], None],
    ) -> None:
        self._tick_ms = tick_ms
        self._wheel_size = wheel_size
        self._interval_ms = tick_ms * wheel_size
        self._enqueue = enqueue
        self._current_time_ms = start_ms - start_ms % tick_ms
        self._buckets = [TimerTaskList() for _ in range(wheel_size)]
        self._overflow_wheel: TimingWheel | None = None

    def add(self, entry: TimerTaskEntry) -> bool:
        """False when the entry is due already, or cancelled."""
        if entry.cancelled:
            return False
        expiration_ms = entry.expiration_ms
        if expiration_ms < self._current_time_ms + self._tick_ms:
            return False
        if expiration_ms < self._current_time_ms + self._interval_ms:
            virtual_id = expiration_ms // self._tick_ms
            bucket = self._buckets[virtual_id % self._wheel_size]
            bucket.add(entry)
            if bucket.set_expiration(virtual_id * self._tick_ms):
                self._enqueue(bucket)
            return True
        if self._overflow_wheel is None:
            self._overflow_wheel = TimingWheel(
                self._interval_ms,
                self._wheel_size,
                self._current_time_ms,
                enqueue=self._enqueue,
            )
        return self._overflow_wheel.add(entry)

    def advance_clock(self, time_ms: int) -> None:
        if time_ms >= self._current_time_ms + self._tick_ms:
            self._current_time_ms = time_ms - time_ms % self._tick_ms
            if self._overflow_wheel is not None:
                self._overflow_wheel.advance_clock(self._current_time_ms)


class SystemTimer:
    """Timing wheels driven by the monotonic clock; expired tasks run on one thread of their own.

    Thread-safe; any thread may add and cancel, one thread advances the clock.

    Ports: org.apache.kafka.server.util.timer.SystemTimer
    """

    def __init__(self, name: str, time: Time, tick_ms: int = 1, wheel_size: int = 20) -> None:
        self._time = time
        self._bucket_available = threading.Condition(threading.Lock())
        # guarded by self._bucket_available
        self._queue: list[tuple[int, int, TimerTaskList]] = []  # heap by expiration
        self._queued = 0
        self._size = 0
        self._unfinished = 0  # expired, but not done
        self._closed = False
        self._wheel = TimingWheel(
            tick_ms, wheel_size, time.hi_res_clock_ms(), enqueue=self._enqueue_locked
        )
        self._expired: SimpleQueue[TimerTask | None] = SimpleQueue()
        self._executor = threading.Thread(
            target=self._run_expired, name=f"executor-{name}", daemon=True
        )
        self._executor.start()
        time.add_listener(self)

    @property
    def size(self) -> int:
        return self._size

    def add(self, task: TimerTask) -> None:
        task.cancel()  # a task waits in one place only
        if task.delay_ms <= 0:
            with self._bucket_available:
                self._expire_locked(task)
            return
        entry = TimerTaskEntry(task, task.delay_ms + self._time.hi_res_clock_ms(), self._cancel)
        task.timer_entry = entry
        with self._bucket_available:
            if self._wheel.add(entry):
                self._size += 1
                return
            if not entry.cancelled:
                self._expire_locked(task)

    def advance_clock(self, timeout_ms: int) -> bool:
        with self._bucket_available:
            bucket = self._poll_locked(timeout_ms)
            if bucket is None:
                return False
            while bucket is not None:
                self._wheel.advance_clock(bucket.expiration_ms)
                for entry in bucket.take_all():
                    if not self._wheel.add(entry):
                        self._size -= 1
                        self._expire_locked(entry.task)
                bucket = self._poll_locked(0)
        return True

    def clock_moved(self) -> None:
        with self._bucket_available:
            self._bucket_available.notify_all()

    def is_behind(self) -> bool:
        with self._bucket_available:
            return self._unfinished > 0 or (
                bool(self._queue) and self._queue[0][0] <= self._time.hi_res_clock_ms()
            )

    def close(self) -> None:
        """Run what has expired already, forget the rest and end the executor thread."""
        with self._bucket_available:
            if self._closed:
                return
            self._closed = True
            self._bucket_available.notify_all()
        self._time.remove_listener(self)
        self._expired.put(None)
        if self._executor is not threading.current_thread():
            self._executor.join()

    def _cancel(self, entry: TimerTaskEntry) -> None:
        with self._bucket_available:
            entry.cancelled = True
            if entry.bucket is not None:
                entry.bucket.remove(entry)
                self._size -= 1

    def _expire_locked(self, task: TimerTask) -> None:
        self._unfinished += 1
        self._expired.put(task)

    def _enqueue_locked(self, bucket: TimerTaskList) -> None:
        self._queued += 1
        heapq.heappush(self._queue, (bucket.expiration_ms, self._queued, bucket))
        if self._queue[0][2] is bucket:
            self._bucket_available.notify()

    def _poll_locked(self, timeout_ms: int) -> TimerTaskList | None:
        """Take the first bucket that is due, waiting up to `timeout_ms` for one."""
        deadline_ns = self._time.nanoseconds() + timeout_ms * 1_000_000
        while not self._closed:
            wait_ns = deadline_ns - self._time.nanoseconds()
            if self._queue:
                delay_ms = self._queue[0][0] - self._time.hi_res_clock_ms()
                if delay_ms <= 0:
                    return heapq.heappop(self._queue)[2]
                wait_ns = min(wait_ns, delay_ms * 1_000_000)
            if wait_ns <= 0:
                return None
            self._bucket_available.wait(wait_ns / 1_000_000_000)
        return None

    def _run_expired(self) -> None:
        while (task := self._expired.get()) is not None:
            try:
                task.run()
            except Exception:
                logger.exception("Expired task %r failed", task)
            with self._bucket_available:
                self._unfinished -= 1
