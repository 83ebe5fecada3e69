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

    def maybe_throttle(self, observed: float, *, check: Callable[[], None] | None = None) -> None:
        """Something was done; sleeps once in a while if that is too much.

        `check` is called now and then during a sleep and may end it by raising.
        """
        with self._lock:
            self._observed_so_far += observed
            elapsed_ns = self._time.nanoseconds() - self._period_start_ns
            if elapsed_ns <= self._check_interval_ns or self._observed_so_far <= 0:
                return
            due_ns = self._observed_so_far / self._desired_rate_per_sec * _NS_PER_S
            sleep_ms = round((due_ns - elapsed_ns) / _NS_PER_MS)
            # The lock is held, so that the others of this rate wait as well.
            while sleep_ms > 0:
                self._time.sleep(min(sleep_ms, _CHECK_MS))
                sleep_ms -= _CHECK_MS
                if check is not None:
                    check()
            self._period_start_ns = self._time.nanoseconds()
            self._observed_so_far = 0.0

    def update_desired_rate_per_sec(self, desired_rate_per_sec: float) -> None:
        with self._lock:
            self._desired_rate_per_sec = desired_rate_per_sec
