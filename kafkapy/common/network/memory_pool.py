"""A bound on the memory that received requests hold."""

import threading
from collections.abc import Callable


class MemoryPool:
    """Counts the bytes of requests between arrival and handling. Thread-safe.

    Not strict: a reservation is granted while anything is left, so the pool may go over its size by
    one request; otherwise a request larger than the pool could never be read.

    Ports: org.apache.kafka.common.memory.SimpleMemoryPool
    """

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes  # constant after construction
        self._lock = threading.Lock()
        # guarded by self._lock
        self._available_bytes = size_bytes
        self._waiting: list[Callable[[], None]] = []

    @property
    def available_bytes(self) -> int:
        with self._lock:
            return self._available_bytes

    def try_allocate(self, size_bytes: int, on_available: Callable[[], None]) -> bool:
        """Reserve; when nothing is left return False and call `on_available` once something is."""
        with self._lock:
            if self._available_bytes <= 0:
                if on_available not in self._waiting:
                    self._waiting.append(on_available)
                return False
            self._available_bytes -= size_bytes
            return True

    def release(self, size_bytes: int) -> None:
        with self._lock:
            self._available_bytes += size_bytes
            if not self._waiting or self._available_bytes <= 0:
                return
            waiting, self._waiting = self._waiting, []
        for on_available in waiting:
            on_available()
