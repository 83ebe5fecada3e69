"""Long computations beside threads that must answer soon."""

from kafkapy.utils.time import Time

_NS_PER_MS = 1_000_000
# Asking the clock costs about as much as a step of the work.
_STEPS_PER_LOOK = 64


class CpuPacer:
    """Lets a thread that computes for long rest after every bit of work. Used by one thread.

    Python threads share one interpreter: whoever computes keeps it until the switch interval has
    passed, and compiled code until it calls something. While this one sleeps, all others run.
    """

    def __init__(self, time: Time, *, work_ms: int = 1, rest_ms: int = 1) -> None:
        self._time = time
        self._work_ns = work_ms * _NS_PER_MS
        self._rest_ms = rest_ms
        self._steps = 0
        self._rested_ns = time.nanoseconds()

    def step(self) -> None:
        """A few microseconds of work are done."""
        self._steps += 1
        if self._steps >= _STEPS_PER_LOOK:
            self.rest_if_due()

    def rest_if_due(self) -> None:
        self._steps = 0
        if self._time.nanoseconds() - self._rested_ns >= self._work_ns:
            self._time.sleep(self._rest_ms)
            self._rested_ns = self._time.nanoseconds()
