"""The clock of a broker, in the hands of a test."""

from __future__ import annotations

from collections.abc import Callable


class BrokerClock:
    """Moves a broker's time on. Thread-safe."""

    def __init__(self, advance_ms: Callable[[int], None], milliseconds: Callable[[], int]) -> None:
        self._advance_ms = advance_ms
        self._milliseconds = milliseconds

    def milliseconds(self) -> int:
        """The time of day, since the epoch, as the broker sees it."""
        return self._milliseconds()

    def advance(
        self,
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
        milliseconds: float = 0,
    ) -> None:
        """Returns when what was due by then has happened: sessions and transactions timed out,
        old segments deleted, delayed requests answered."""
        total_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        advance_ms = round(total_s * 1000 + milliseconds)
        if advance_ms < 0:
            raise ValueError(f"a broker's clock cannot be set back, by {-advance_ms} ms")
        self._advance_ms(advance_ms)
