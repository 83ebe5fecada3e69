"""Holding work to a rate."""

import threading
from collections.abc import Callable

from kafkapy.utils.time import Time

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_CHECK_MS = 100


class Throttler:
    """Lets its callers sleep so that together they do not exceed a rate. Thread-safe.

    Ports: org.apache.kafka.storage.internals.utils.Throttler
    """

    def __init__(
        self, desired_rate_per_sec: float, time: Time, *, check_interval_ms: int = 300
    ) -> None:
        self._time = time  # constant after construction
        self._check_interval_ns = check_interval_ms * _NS_PER_MS
        self._lock = threading.Lock()
        # guarded by self._lock
        self._desired_rate_per_sec = desired_rate_per_sec
        self._period_start_ns = time.nanoseconds()
        self._observed_so_far = 0.0
        # written under self._lock, read by anyone
        self._sleep_until_ns = self._period_start_ns

    def maybe_throttle(self, observed: float, *, check: Callable[[], None] | None = None) -> None:
        """Something was done; sleeps once in a while if that is too much.

        `check` is called now and then during a sleep and may end it by raising.
        """
        self._observe(observed)
        # Without the lock: everybody of this rate sleeps, and each can be stopped.
        while (left_ns := self._sleep_until_ns - self._time.nanoseconds()) >= _NS_PER_MS / 2:
            self._time.sleep(min(round(left_ns / _NS_PER_MS), _CHECK_MS))
            if check is not None:
                check()

    def update_desired_rate_per_sec(self, desired_rate_per_sec: float) -> None:
        """Also ends a sleep that the old rate asked for."""
        with self._lock:
            if desired_rate_per_sec != self._desired_rate_per_sec:
                self._desired_rate_per_sec = desired_rate_per_sec
                self._start_period_locked(self._time.nanoseconds())

    def _observe(self, observed: float) -> None:
        with self._lock:
            self._observed_so_far += observed
            now_ns = self._time.nanoseconds()
            elapsed_ns = now_ns - self._period_start_ns
            if elapsed_ns <= self._check_interval_ns or self._observed_so_far <= 0:
                return
            due_ns = self._observed_so_far / self._desired_rate_per_sec * _NS_PER_S
            self._start_period_locked(now_ns + max(round(due_ns - elapsed_ns), 0))

    def _start_period_locked(self, start_ns: int) -> None:
        self._observed_so_far = 0.0
        self._period_start_ns = self._sleep_until_ns = start_ns
