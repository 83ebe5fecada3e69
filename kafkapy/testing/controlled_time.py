"""A clock that flows like the system's and can be moved on."""

from __future__ import annotations

import threading

from kafkapy.utils.time import ClockListener, SystemTime

_SETTLE_CHECK_MS = 1


class ControlledTime:
    """The system's clocks, moved on as often as somebody likes. Thread-safe.

    Neither clock is ever set back: a broker that is to live at an earlier time needs a clock of
    its own. A frozen clock lets no time-out pass until it is thawed; the time of day goes on.
    """

    def __init__(self, offset_ms: int = 0, *, is_frozen: bool = False) -> None:
        self._system = SystemTime()
        self._lock = threading.Lock()
        # guarded by self._lock for writing
        self._offset_ms = offset_ms
        self._monotonic_offset_ns = 0
        self._frozen_at_ns = self._system.nanoseconds() if is_frozen else None
        self._listeners: tuple[ClockListener, ...] = ()

    @property
    def offset_ms(self) -> int:
        """How far the time of day is ahead of the system's."""
        return self._offset_ms

    def milliseconds(self) -> int:
        return self._system.milliseconds() + self._offset_ms

    def nanoseconds(self) -> int:
        frozen_at_ns = self._frozen_at_ns
        if frozen_at_ns is not None:
            return frozen_at_ns
        return self._system.nanoseconds() + self._monotonic_offset_ns

    def hi_res_clock_ms(self) -> int:
        return self.nanoseconds() // 1_000_000

    def sleep(self, ms: int) -> None:
        self._system.sleep(ms)

    def add_listener(self, listener: ClockListener) -> None:
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def remove_listener(self, listener: ClockListener) -> None:
        with self._lock:
            self._listeners = tuple(known for known in self._listeners if known is not listener)

    def advance(self, ms: int) -> None:
        """Move both clocks on and wake whoever waits for them."""
        if ms < 0:
            raise ValueError(f"a clock cannot be set back, by {ms} ms")
        with self._lock:
            self._offset_ms += ms
            self._monotonic_offset_ns += ms * 1_000_000
            listeners = self._listeners
        for listener in listeners:
            listener.clock_moved()

    def thaw(self) -> None:
        """From now on time passes."""
        with self._lock:
            if self._frozen_at_ns is not None:
                self._monotonic_offset_ns += self._frozen_at_ns - self._system.nanoseconds()
                self._frozen_at_ns = None

    def settle(self, timeout_ms: int) -> bool:
        """Wait until all that is due has been done; False when that takes too long."""
        deadline_ms = self._system.hi_res_clock_ms() + timeout_ms
        while any(listener.is_behind() for listener in self._listeners):
            if self._system.hi_res_clock_ms() >= deadline_ms:
                return False
            self._system.sleep(_SETTLE_CHECK_MS)
        return True
