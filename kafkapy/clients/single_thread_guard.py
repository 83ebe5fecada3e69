"""Holds a client to the one thread at a time that it is for."""

from __future__ import annotations

import threading
from types import TracebackType

from kafkapy.clients.client_errors import ConcurrentModificationError, IllegalStateError


class SingleThreadGuard:
    """Entered by every call of a client: a second thread is refused, not made to wait, and so is
    everybody once it is closed. A thread may enter again from within. Thread-safe.

    Ports: org.apache.kafka.clients.consumer.internals.ClassicKafkaConsumer
    """

    __slots__ = ("_depth", "_lock", "_name", "_owner", "is_closed")

    def __init__(self, name: str) -> None:
        self._name = name  # constant after construction
        self._lock = threading.Lock()
        # changed by the thread that holds self._lock
        self._owner: int | None = None
        self._depth = 0
        self.is_closed = False

    def __enter__(self) -> None:
        if self.is_closed:
            raise IllegalStateError(f"This {self._name} has been closed")
        self.acquire()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def acquire(self) -> None:
        """Also when closed."""
        me = threading.get_ident()
        if self._owner != me:
            if not self._lock.acquire(blocking=False):
                raise ConcurrentModificationError(
                    f"This {self._name} is in use by thread {self._owner}: it is not for use by"
                    " several threads at once"
                )
            self._owner = me
        self._depth += 1

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
            self._lock.release()
