"""Locks that the standard library does not have."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from threading import get_ident
from types import TracebackType


class ReentrantReadWriteLock:
    """Many readers or one writer, both reentrant; a waiting writer holds back new readers.

    A thread may read while it writes, and may go on reading after it has stopped writing.
    Asking to write while only reading can never succeed, so it raises RuntimeError.

    Ports: java.util.concurrent.locks.ReentrantReadWriteLock
    """

    __slots__ = (
        "_changed",
        "_mutex",
        "_read_guard",
        "_readers",
        "_waiting_readers",
        "_waiting_writers",
        "_write_guard",
        "_write_holds",
        "_writer",
    )

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._changed = threading.Condition(self._mutex)
        # guarded by self._mutex
        self._readers: dict[int, int] = {}  # thread -> holds
        self._writer: int | None = None
        self._write_holds = 0
        self._waiting_readers = 0
        self._waiting_writers = 0
        # Guards keep no state of their own, so one of each serves every caller.
        self._read_guard = _Guard(self, is_for_writing=False)
        self._write_guard = _Guard(self, is_for_writing=True)

    def read(self) -> AbstractContextManager[None]:
        return self._read_guard

    def write(self) -> AbstractContextManager[None]:
        return self._write_guard

    def is_write_locked_by_current_thread(self) -> bool:
        return self._writer == get_ident()

    def acquire_read(self) -> None:
        me = get_ident()
        readers = self._readers
        with self._mutex:
            if self._writer is None:
                if not self._waiting_writers or me in readers:
                    readers[me] = readers.get(me, 0) + 1
                    return
            elif self._writer == me:
                readers[me] = readers.get(me, 0) + 1
                return
            self._waiting_readers += 1
            try:
                self._changed.wait_for(lambda: self._writer is None and not self._waiting_writers)
            finally:
                self._waiting_readers -= 1
            readers[me] = 1

    def release_read(self) -> None:
        me = get_ident()
        readers = self._readers
        with self._mutex:
            holds = readers[me]
            if holds > 1:
                readers[me] = holds - 1
                return
            del readers[me]
            if self._waiting_writers and not readers:
                self._changed.notify_all()

    def acquire_write(self) -> None:
        me = get_ident()
        with self._mutex:
            if self._writer == me:
                self._write_holds += 1
                return
            if me in self._readers:
                raise RuntimeError("a thread that only reads cannot turn into a writer")
            if self._writer is not None or self._readers:
                self._waiting_writers += 1
                try:
                    self._changed.wait_for(lambda: self._writer is None and not self._readers)
                finally:
                    self._waiting_writers -= 1
            self._writer = me
            self._write_holds = 1

    def release_write(self) -> None:
        with self._mutex:
            if self._writer != get_ident():
                raise RuntimeError("the lock is not held for writing by this thread")
            self._write_holds -= 1
            if self._write_holds == 0:
                self._writer = None
                if self._waiting_readers or self._waiting_writers:
                    self._changed.notify_all()


class _Guard:
    __slots__ = ("_is_for_writing", "_lock")

    def __init__(self, lock: ReentrantReadWriteLock, *, is_for_writing: bool) -> None:
        self._lock = lock
        self._is_for_writing = is_for_writing

    def __enter__(self) -> None:
        if self._is_for_writing:
            self._lock.acquire_write()
        else:
            self._lock.acquire_read()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._is_for_writing:
            self._lock.release_write()
        else:
            self._lock.release_read()
