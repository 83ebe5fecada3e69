"""A lock that its waiters get in the order in which they came."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class FairLock:
    """Handed from its holder to the thread that has waited longest; not reentrant.

    A thread that gives a plain lock back and takes it again at once mostly gets it before those
    who wait have woken up, and so may keep it for good.

    Ports: java.util.concurrent.locks.ReentrantLock
    """

    __slots__ = ("_held", "_mutex", "_waiters")

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        # guarded by self._mutex
        self._held = False
        self._waiters: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        with self._mutex:
            if not self._held:
                self._held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiters.append(turn)
        try:
            turn.acquire()  # released by the holder, who leaves the lock held for us
        except BaseException:  # Ctrl-C: nobody is to wait for one who has gone
            with self._mutex:
                if turn in self._waiters:
                    self._waiters.remove(turn)
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
            self._waiters.popleft().release()
        else:
            self._held = False
