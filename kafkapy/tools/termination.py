"""How a command that is told to end gets to tidy up first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNAL_EXIT_BASE = 128


# A wait for records goes in turns of this length, so that a signal is heeded soon.
TURN_MS = 100


class DeferredTermination:
    """SIGINT and SIGTERM noted while it is entered, and raised where the command says. For the main
    thread; elsewhere no signal comes.

    An exception in the middle of a client's work could leave a lock of its held, and closing the
    client would then never end. A second signal does not wait.
    """

    def __init__(self) -> None:
        self._asked: BaseException | None = None
        self._is_interruptible = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> DeferredTermination:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # A background job of a shell ignores SIGINT, and goes on ignoring it.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def ask(self, error: BaseException) -> None:
        """To end by this error, as by a signal: for callbacks, of whose errors a client only logs.

        May be called by any thread.
        """
        if self._asked is None:
            self._asked = error

    def raise_if_asked(self) -> None:
        if self._asked is not None:
            raise self._asked

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within it a signal is raised at once: for waits outside any client, as for a person."""
        self._is_interruptible = True
        try:
            self.raise_if_asked()
            yield
        finally:
            self._is_interruptible = False

    def _note(self, signal_number: int, frame: FrameType | None) -> None:
        self.raise_if_asked()
        self._asked = (
            KeyboardInterrupt()
            if signal_number == signal.SIGINT
            else SystemExit(_SIGNAL_EXIT_BASE + signal_number)
        )
        if self._is_interruptible:
            self.raise_if_asked()
