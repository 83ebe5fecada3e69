"""A door between clients and handlers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kafkapy.network.request_channel import Request

_DRAIN_TIMEOUT_S = 5.0


class RequestGate:
    """Lets requests through, or keeps them until it is opened again. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # guarded by self._changed
        self._is_closed = False
        self._inside = 0
        self._waiting: list[tuple[Callable[[Request], None], Request]] = []

    def pass_through(self, handle: Callable[[Request], None], request: Request) -> None:
        """Handle the request now, or when the gate opens. Never blocks: handlers are few."""
        with self._changed:
            if self._is_closed:
                self._waiting.append((handle, request))
                return
            self._inside += 1
        try:
            handle(request)
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """No request is being handled meanwhile; those that come are handled afterwards."""
        try:
            with self._changed:
                self._is_closed = True
                # A handler that hangs does not hang the test: who needs quiet looks for himself.
                self._changed.wait_for(lambda: not self._inside, _DRAIN_TIMEOUT_S)
            yield
        finally:
            with self._changed:
                self._is_closed = False
                waiting, self._waiting = self._waiting, []
            for handle, request in waiting:
                self.pass_through(handle, request)
