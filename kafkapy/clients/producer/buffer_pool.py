"""The bound on the memory of records that are not sent yet."""

from __future__ import annotations

import threading
from collections import deque

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.common.errors import RequestTimeoutError
from kafkapy.utils.time import Time

# Somebody who waits is woken for this part of the pool, not for each batch that is freed: the
# thread that frees them has better to do than to take turns with the one that fills them.
_WAKE_PART = 64
# So that a pool nearly all of whose memory is stuck serves who waits for little all the same.
_LOOK_AGAIN_MS = 5


class BufferExhaustedError(RequestTimeoutError):
    """Records are handed in faster than they can be sent, for longer than `max.block.ms`.

    Ports: org.apache.kafka.clients.producer.BufferExhaustedException
    """


class BufferPool:
    """Counts the bytes of batches, and makes whoever wants too many wait in order. Thread-safe.

    It keeps no buffers: Python's allocator does that.

    Ports: org.apache.kafka.clients.producer.internals.BufferPool
    """

    def __init__(self, total_bytes: int, time: Time) -> None:
        # constant after construction
        self.total_bytes = total_bytes
        self._time = time
        self._wake_bytes = total_bytes // _WAKE_PART
        self._lock = threading.Lock()
        # guarded by self._lock
        self._available_bytes = total_bytes
        self._waiters: deque[threading.Condition] = deque()
        self._closed = False
        self.exhausted_count = 0

    @property
    def available_bytes(self) -> int:
        with self._lock:
            return self._available_bytes

    @property
    def queued(self) -> int:
        """How many threads wait for memory."""
        return len(self._waiters)

    def allocate(self, size_bytes: int, max_block_ms: int) -> None:
        """Take the bytes, after waiting for them; BufferExhaustedError when that takes too long."""
        if size_bytes > self.total_bytes:
            raise ValueError(f"{size_bytes} bytes of a pool of {self.total_bytes}")
        with self._lock:
            if self._closed:
                raise IllegalStateError("The producer was closed while waiting for memory")
            if not self._waiters and self._available_bytes >= size_bytes:
                self._available_bytes -= size_bytes
                return
            self._wait_locked(size_bytes, max_block_ms)

    def deallocate(self, size_bytes: int) -> None:
        with self._lock:
            self._available_bytes += size_bytes
            if self._waiters and self._available_bytes >= self._wake_bytes:
                self._waiters[0].notify()

    def close(self) -> None:
        """Whoever waits, or comes later, gets an error."""
        with self._lock:
            self._closed = True
            for waiter in self._waiters:
                waiter.notify()

    def _wait_locked(self, size_bytes: int, max_block_ms: int) -> None:
        deadline_ms = self._time.hi_res_clock_ms() + max_block_ms
        turn = threading.Condition(self._lock)
        self._waiters.append(turn)
        try:
            # A large request is served before small ones that came later, or it might never be.
            while self._waiters[0] is not turn or self._available_bytes < size_bytes:
                remaining_ms = deadline_ms - self._time.hi_res_clock_ms()
                if remaining_ms <= 0:
                    self.exhausted_count += 1
                    raise BufferExhaustedError(
                        f"No {size_bytes} bytes of the {self.total_bytes} of buffer.memory became"
                        f" free within {max_block_ms} ms"
                    )
                turn.wait(min(remaining_ms, _LOOK_AGAIN_MS) / 1000)
                if self._closed:
                    raise IllegalStateError("The producer was closed while waiting for memory")
            self._available_bytes -= size_bytes
        finally:
            self._waiters.remove(turn)
            if self._waiters:
                self._waiters[0].notify()
