"""The clock seam: nothing else in kafkapy reads a clock."""

from time import monotonic_ns, sleep, time_ns
from typing import Protocol


class ClockListener(Protocol):
    """Whoever sleeps until a point in time and must wake when the clock jumps past it."""

    def clock_moved(self) -> None:
        """Look at the clock again. Called with no lock held."""
        ...

    def is_behind(self) -> bool:
        """Whether something that is due by now has not been done yet."""
        ...


class Time(Protocol):
    """A clock that tests can drive.

    Ports: org.apache.kafka.common.utils.Time
    """

    def milliseconds(self) -> int:
        """Wall-clock time since the epoch, for timestamps that leave the process."""
        ...

    def nanoseconds(self) -> int:
        """Monotonic time, for intervals and time-outs."""
        ...

    def hi_res_clock_ms(self) -> int:
        """Monotonic time in milliseconds."""
        ...

    def sleep(self, ms: int) -> None: ...

    def add_listener(self, listener: ClockListener) -> None:
        """Told of every jump from now on."""
        ...

    def remove_listener(self, listener: ClockListener) -> None: ...


class SystemTime:
    """The operating system's clocks.

    Ports: org.apache.kafka.common.utils.SystemTime
    """

    def milliseconds(self) -> int:
        return time_ns() // 1_000_000

    def nanoseconds(self) -> int:
        return monotonic_ns()

    def hi_res_clock_ms(self) -> int:
        return monotonic_ns() // 1_000_000

    def sleep(self, ms: int) -> None:
        sleep(ms / 1000)

    def add_listener(self, listener: ClockListener) -> None:
        """Does nothing: these clocks only flow."""

    def remove_listener(self, listener: ClockListener) -> None: ...
