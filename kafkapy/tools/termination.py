"""How a command that is told to end gets to tidy up first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNAL_EXIT_BASE = 128


@contextmanager
def tidy_termination() -> Iterator[None]:
    """Within it SIGTERM raises SystemExit, as SIGINT raises KeyboardInterrupt: a `finally` runs."""

    def end(signal_number: int, frame: FrameType | None) -> None:
        raise SystemExit(_SIGNAL_EXIT_BASE + signal_number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can ask for signals
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
