"""How a running command is told to stop."""

import queue

_SIGNAL_CHECK_S = 0.5


class StopRequest:
    """Asked for by signal handlers and failing threads, waited for by the main thread.

    A signal handler runs in the middle of whatever the main thread is doing, this waiting included,
    so it may only use what is reentrant. A SimpleQueue is; an Event is not: its `set` would wait
    for the lock that the interrupted `wait` holds.
    """

    def __init__(self) -> None:
        self._reasons: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def ask(self, reason: str | None = None) -> None:
        """With a reason if it is a failure. From any thread or signal handler."""
        self._reasons.put(reason)

    def is_asked(self, *, within_s: float) -> bool:
        """Whether somebody asks before the time is over, or has asked already."""
        if not self._reasons.empty():
            return True
        try:
            reason = self._reasons.get(timeout=within_s)
        except queue.Empty:
            return False
        self._reasons.put(reason)  # for the one who waits for it
        return True

    def wait(self) -> str | None:
        """The reason of the first who asked."""
        while True:
            try:
                # A signal may reach any thread; its handler runs when the main one next wakes.
                return self._reasons.get(timeout=_SIGNAL_CHECK_S)
            except queue.Empty:
                continue
