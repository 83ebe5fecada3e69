"""The queue between network threads and handler threads.

Handlers that find nothing park, each on a lock of its own; the last to park is the first to be
woken, so that few threads stay warm and the others sleep. To wake as few as possible there is at
most about one handler "searching": woken, but not yet at the queue.

- A producer appends, and when it has appended all it has, wakes one handler unless one searches.
- A running handler takes its next request without waking anybody.
- A woken handler says that it no longer searches, takes a request, and before it runs it wakes one
  more if requests remain. So requests never wait behind a handler that blocks.
- A handler that finds nothing first lists itself as parked, then looks again, then sleeps. A
  producer appends before it looks at the list. So one of the two always sees the other.

No lock is shared on the way of a request, unlike in `queue.Queue`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class RequestQueue(Generic[T]):
    """A bounded queue of many producers and many consumers. Thread-safe.

    Ports: java.util.concurrent.ArrayBlockingQueue, as RequestChannel uses it
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity  # constant after construction
        # Each is changed by single operations that are atomic of themselves.
        self._items: deque[T] = deque()
        self._parked: list[threading.Lock] = []
        self._searching = False
        self._refused: deque[Callable[[], None]] = deque()
        self._own = threading.local()

    def __len__(self) -> int:
        return len(self._items)

    def offer(self, item: T) -> bool:
        """Append unless the queue is full; producers may exceed the bound by one each.

        No handler learns of it before `wake_handler`.
        """
        if len(self._items) >= self.capacity:
            return False
        self._items.append(item)
        return True

    def put(self, item: T) -> None:
        """Append whatever the bound says, and wake a handler."""
        self._items.append(item)
        self.wake_handler()

    def wake_handler(self) -> None:
        """Have somebody look at the queue, if there is anything in it."""
        if self._items and not self._searching:
            self._wake_one()

    def call_when_half_empty(self, callback: Callable[[], None]) -> None:
        """Call once, from whatever thread, when a refused producer may offer again."""
        self._refused.append(callback)
        # It may have become so between the refusal and now.
        self._call_refused_producers()

    def poll(self) -> T | None:
        """The next item if there is one now."""
        if not self._items:
            return None
        try:
            item = self._items.popleft()
        except IndexError:
            return None  # somebody else was faster
        if self._refused:
            self._call_refused_producers()
        return item

    def take(self, timeout_s: float) -> T | None:
        """The next item, waited for; None when there is none within the time-out."""
        while True:
            item = self.poll()
            if item is not None:
                return item
            if not self._park(timeout_s):
                return None
            self._searching = False
            item = self.poll()
            if item is not None:
                if self._items and not self._searching:
                    self._wake_one()
                return item

    def _park(self, timeout_s: float) -> bool:
        """Sleep until there may be something; False on time-out."""
        lock = self._lock_of_this_thread()
        self._parked.append(lock)
        if self._items:
            woken = False
            timed_out = False
        else:
            woken = lock.acquire(timeout=timeout_s)
            timed_out = not woken
        if woken:
            return True
        try:
            self._parked.remove(lock)
        except ValueError:
            # Somebody has just taken it off the list to wake this thread: that is a wake-up.
            lock.acquire()
            return True
        return not timed_out

    def _wake_one(self) -> None:
        try:
            lock = self._parked.pop()
        except IndexError:
            return  # all are running, and look here before they park
        self._searching = True
        lock.release()

    def _call_refused_producers(self) -> None:
        if len(self._items) > self.capacity // 2:
            return
        while True:
            try:
                callback = self._refused.popleft()
            except IndexError:
                return
            callback()

    def _lock_of_this_thread(self) -> threading.Lock:
        """Held by its thread; released by others to wake it."""
        lock: threading.Lock | None = getattr(self._own, "lock", None)
        if lock is None:
            lock = self._own.lock = threading.Lock()
            lock.acquire()
        return lock
