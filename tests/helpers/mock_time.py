"""A clock that moves only when a test says so."""

from __future__ import annotations

import threading

from kafkapy.utils.time import ClockListener
from tests.helpers.mock_scheduler import MockScheduler


class MockTime:
    """Both clocks stand still until `sleep`, which also runs the scheduled tasks then due.

    With `auto_tick_ms` every reading moves the clocks on by that much.

    Ports: kafka.utils.MockTime
    """

    def __init__(self, now_ms: int = 1_700_000_000_000, *, auto_tick_ms: int = 0) -> None:
        self._lock = threading.Lock()
        self._wall_ms = now_ms
        # Far from the wall clock, so that mixing the two up shows.
        self._monotonic_ns = 5_000_000_000_000
        self._auto_tick_ms = auto_tick_ms
        self.scheduler = MockScheduler(self)

    def milliseconds(self) -> int:
        with self._lock:
            self._advance_locked(self._auto_tick_ms)
            return self._wall_ms

    def nanoseconds(self) -> int:
        with self._lock:
            self._advance_locked(self._auto_tick_ms)
            return self._monotonic_ns

    def hi_res_clock_ms(self) -> int:
        return self.nanoseconds() // 1_000_000

    def sleep(self, ms: int) -> None:
        with self._lock:
            self._advance_locked(ms)
        self.scheduler.tick()

    def add_listener(self, listener: ClockListener) -> None:
        """Does nothing: what waits for this clock is driven by hand."""

    def remove_listener(self, listener: ClockListener) -> None: ...

    def set_wall_clock_ms(self, now_ms: int) -> None:
        """A jump of the wall clock alone, as after an NTP correction."""
        with self._lock:
            self._wall_ms = now_ms

    def _advance_locked(self, ms: int) -> None:
        self._wall_ms += ms
        self._monotonic_ns += ms * 1_000_000
