"""A lock that its waiters get in the order in which they came."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class FairLock:
    """Handed from its holder to the thread that has waited longest; not reentrant.

    A thread that gives a plain lock back and takes it again at once mostly gets it before those
    who wait have woken up, and so may keep it for good.

    An exception out of a signal handler can end `__enter__` when the lock is held already, and no
    `__exit__` follows. A thread that finds the lock to be its own therefore takes it over.

    Ports: java.util.concurrent.locks.ReentrantLock
    """

    __slots__ = ("_mutex", "_owner", "_waiters")

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        # guarded by self._mutex
        self._owner: int | None = None  # the thread that holds it
        self._waiters: deque[tuple[int, threading.Lock]] = deque()

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._mutex:
            if self._owner is None or self._owner == thread:
                self._owner = thread
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiters.append((thread, turn))
        try:
            turn.acquire()  # released by the holder, who makes the lock ours
        except BaseException:  # Ctrl-C: nobody is to wait for one who has gone
            with self._mutex:
                if (thread, turn) in self._waiters:
                    self._waiters.remove((thread, turn))
                else:
                    self._hand_on_locked()
            raise

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._mutex:
            self._hand_on_locked()

    def _hand_on_locked(self) -> None:
        if self._waiters:
            self._owner, turn = self._waiters.popleft()
            turn.release()
        else:
            self._owner = None
