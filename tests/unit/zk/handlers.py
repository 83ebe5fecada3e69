"""Handlers that keep what they are told."""

import threading
from queue import Empty, Queue

from kafkapy.zk.metadata_store import (
    StateChangeHandler,
    ZNodeChangeHandler,
    ZNodeChildChangeHandler,
)

_TIMEOUT_SECONDS = 20


class _Recorder:
    def __init__(self) -> None:
        self.threads: set[str] = set()
        self._events: Queue[str] = Queue()

    def note(self, event: str) -> None:
        self.threads.add(threading.current_thread().name)
        self._events.put(event)

    def next(self) -> str:
        """The next event, for which other threads may need a while."""
        return self._events.get(timeout=_TIMEOUT_SECONDS)

    @property
    def pending(self) -> list[str]:
        """What came and was not taken yet."""
        found = []
        while True:
            try:
                found.append(self._events.get_nowait())
            except Empty:
                return found


class RecordingChangeHandler(_Recorder, ZNodeChangeHandler):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def handle_creation(self) -> None:
        self.note("created")

    def handle_deletion(self) -> None:
        self.note("deleted")

    def handle_data_change(self) -> None:
        self.note("changed")


class RecordingChildHandler(_Recorder, ZNodeChildChangeHandler):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def handle_child_change(self) -> None:
        self.note("children")


class RecordingStateHandler(_Recorder, StateChangeHandler):
    def __init__(self, name: str = "recorder") -> None:
        super().__init__()
        self.name = name

    def before_initializing_session(self) -> None:
        self.note("before")

    def after_initializing_session(self) -> None:
        self.note("after")
