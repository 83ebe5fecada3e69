"""Where values lie on an axis, and which of them are written beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_SECOND_MS = 1000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What one reads off a clock without reckoning.
TIME_STEPS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(step * _SECOND_MS for step in (1, 2, 5, 10, 15, 30)),
    *(step * _MINUTE_MS for step in (1, 2, 5, 10, 15, 30)),
    *(step * _HOUR_MS for step in (1, 2, 3, 6, 12)),
    *(step * _DAY_MS for step in (1, 2, 7, 14, 28, 91, 182, 364)),
)


@dataclass(frozen=True, slots=True)
class LinearScale:
    """Values from `low` to `high` laid out from `start` to `end`; `low` < `high`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def nice_ticks(high: float, count: int = 5, *, is_whole: bool = False) -> list[float]:
    """From 0 to the first at or above `high`, in at most about `count` round steps.

    `is_whole` is for what has no halves.
    """
    if high <= 0:
        return [0.0, 1.0]
    # The small allowances are for what binary fractions do to 0.3 / 3.
    rough = max(high / count, 1.0 if is_whole else 0.0) * (1 - 1e-9)
    magnitude = 10.0 ** math.floor(math.log10(rough))
    steps = (nice * magnitude for nice in _NICE)
    step = next(s for s in steps if s >= rough and not (is_whole and s % 1 > 1e-9))
    return [round(index * step, 12) for index in range(math.ceil(high / step - 1e-9) + 1)]


def duration_ticks(high_ms: float, count: int = 5) -> list[float]:
    """In milliseconds, round in the unit in which such durations are read."""
    if high_ms < _SECOND_MS:
        unit_ms = 1
    elif high_ms < 2 * _MINUTE_MS:
        unit_ms = _SECOND_MS
    elif high_ms < 2 * _HOUR_MS:
        unit_ms = _MINUTE_MS
    else:
        unit_ms = _HOUR_MS
    return [tick * unit_ms for tick in nice_ticks(high_ms / unit_ms, count)]


def time_step(span_ms: float, count: int) -> int:
    """The smallest step by the clock that makes at most `count` of the span."""
    return next((step for step in TIME_STEPS_MS if step * count >= span_ms), TIME_STEPS_MS[-1])


def time_ticks(start_ms: int, end_ms: int, count: int = 8) -> list[int]:
    """Round times from `start_ms` to `end_ms`, in UTC."""
    step = time_step(end_ms - start_ms, count)
    first = -(-start_ms // step) * step
    return list(range(first, end_ms + 1, step))


def time_labels(ticks: Sequence[int]) -> list[str]:
    """No finer than the ticks are; a new day is called by its date."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else _SECOND_MS
    labels = []
    for tick in ticks:
        at = time_of(tick)
        if tick % _DAY_MS == 0:
            labels.append(f"{at:%b} {at.day}")
        elif step >= _MINUTE_MS:
            labels.append(f"{at:%H:%M}")
        elif step >= _SECOND_MS:
            labels.append(f"{at:%H:%M:%S}")
        else:
            labels.append(f"{at:%H:%M:%S}.{tick % _SECOND_MS:03d}")
    return labels


def time_of(timestamp_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=timestamp_ms)
