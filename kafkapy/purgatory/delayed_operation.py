"""Requests that wait for something: for a condition to come true, or for their time to run out.

An operation is watched under one or more keys. Whoever changes what an operation may be waiting
for calls `check_and_complete(key)`; a timer completes what nobody completed in time. No caller may
hold a partition or log lock then, since completing sends responses and may take other locks.
"""

from __future__ import annotations

import threading
from abc import abstractmethod

from kafkapy.utils.timer import TimerTask


class DelayedOperation(TimerTask):
    """An operation completed exactly once: by its condition, by time-out, or by force.

    `try_complete` runs under `self.lock`; `on_complete` runs once, on whichever thread completed
    the operation.

    Ports: org.apache.kafka.server.purgatory.DelayedOperation
    """

    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self.lock = threading.RLock()
        # Taken once and never released: an atomic test-and-set.
        self._completed = threading.Lock()

    @property
    def is_completed(self) -> bool:
        return self._completed.locked()

    def force_complete(self) -> bool:
        """Complete now; False when somebody else did it first."""
        if not self._completed.acquire(blocking=False):
            return False
        self.cancel()
        self.on_complete()
        return True

    @abstractmethod
    def on_expiration(self) -> None:
        """Called after `on_complete` when it was the time-out that completed the operation."""

    @abstractmethod
    def on_complete(self) -> None:
        """What the operation is for, usually sending a response."""

    @abstractmethod
    def try_complete(self) -> bool:
        """Check the condition; when it holds, return the result of `force_complete`."""

    def safe_try_complete(self) -> bool:
        with self.lock:
            return False if self._completed.locked() else self.try_complete()

    def run(self) -> None:
        if self.force_complete():
            self.on_expiration()
