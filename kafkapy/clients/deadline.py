"""How much of a time limit is left."""

from __future__ import annotations

from kafkapy.utils.time import Time


class Deadline:
    """A point of the monotonic clock, reached after a time-out. Not thread-safe when moved.

    Ports: org.apache.kafka.common.utils.Timer
    """

    __slots__ = ("_time", "deadline_ms", "timeout_ms")

    def __init__(self, time: Time, timeout_ms: int) -> None:
        self._time = time
        self.timeout_ms = timeout_ms
        self.deadline_ms = time.hi_res_clock_ms() + timeout_ms

    def reset(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.deadline_ms = self._time.hi_res_clock_ms() + timeout_ms

    @property
    def now_ms(self) -> int:
        return self._time.hi_res_clock_ms()

    @property
    def remaining_ms(self) -> int:
        return max(0, self.deadline_ms - self._time.hi_res_clock_ms())

    @property
    def is_expired(self) -> bool:
        return self._time.hi_res_clock_ms() >= self.deadline_ms
