"""Not more records a second than asked for."""

from __future__ import annotations

from kafkapy.utils.time import Time

_MIN_SLEEP_MS = 2


class ThroughputThrottler:
    """Tells a sender to wait when it is ahead of its target. For one thread.

    Ports: org.apache.kafka.tools.ThroughputThrottler
    """

    def __init__(self, target_per_s: float, time: Time) -> None:
        """A negative target: no limit."""
        # constant after construction
        self._target_per_s = target_per_s
        self._time = time
        self._started_ms = time.hi_res_clock_ms()

    def throttle(self, sent: int) -> None:
        """Sleep until so many were due, if that is worth a sleep."""
        if self._target_per_s <= 0:
            return
        elapsed_ms = self._time.hi_res_clock_ms() - self._started_ms
        ahead_ms = int(1000 * sent / self._target_per_s) - elapsed_ms
        if ahead_ms >= _MIN_SLEEP_MS:
            self._time.sleep(ahead_ms)
