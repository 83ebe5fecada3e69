"""The thread that lets delayed operations run out of time."""

from typing import Protocol

from kafkapy.utils.threads import ShutdownableThread

_BUSY_WAIT_MS = 200
_IDLE_WAIT_MS = 1_000


class ExpiringPurgatory(Protocol):
    """A purgatory, as far as its time-outs go."""

    @property
    def num_delayed(self) -> int: ...

    def advance_clock(self, timeout_ms: int) -> None: ...


class ExpiredOperationReaper(ShutdownableThread):
    """Drives the purgatory's timer.

    A new time-out wakes the timer by itself, so an empty purgatory is left to sleep; while
    operations are watched it looks often enough for the purge.

    Ports: kafka.server.DelayedOperationPurgatory.ExpiredOperationReaper
    """

    def __init__(self, name: str, purgatory: ExpiringPurgatory) -> None:
        super().__init__(name)
        self._purgatory = purgatory

    def do_work(self) -> None:
        self._purgatory.advance_clock(
            _BUSY_WAIT_MS if self._purgatory.num_delayed else _IDLE_WAIT_MS
        )
