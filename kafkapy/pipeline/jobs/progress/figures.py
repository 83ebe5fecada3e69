"""Numbers as people read them."""

from __future__ import annotations

_STEPS = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


def grouped(number: float) -> str:
    """12,345: exact, since it counts something."""
    return f"{round(number):,}"


def short(number: float) -> str:
    """1.2M: three digits at most, for axes and narrow places."""
    for size, letter in _STEPS:
        # What would round up to a thousand of the smaller unit belongs to the larger one.
        if abs(number) >= size * 0.9995:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def duration(ms: float) -> str:
    """340 ms, 1.5 s, 2 min 5 s, 3 h 20 min, 2 d 4 h."""
    if 0 < ms < 999.5:
        return f"{ms:.3g} ms"
    seconds = ms / 1000
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
