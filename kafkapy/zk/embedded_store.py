from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue

from kafkapy.utils.time import Time
from kafkapy.zk.metadata_store import (
    Request,
    Response,
    StateChangeHandler,
    StoreClosedError,
    WatchedEvent,
    ZNodeChangeHandler,
    ZNodeChildChangeHandler,
)
from kafkapy.zk.store_handlers import StoreHandlers
from kafkapy.zk.znode_tree import ZnodeTree

# A plain file: Kafka's log loading, like ours, looks only at directories.
EMBEDDED_STORE_FILE = "kafkapy-metadata.sqlite"


class EmbeddedStore:
    """A session with a znode tree kept in one SQLite file by this process. Thread-safe.

    Handlers run in the order of the changes on the store's event thread, with no lock held.
    The session, and with it every ephemeral znode, ends with `close` or with the process.

    Ports: kafka.zookeeper.ZooKeeperClient
    """

    def __init__(self, path: str | Path, time: Time, *, tree: ZnodeTree | None = None) -> None:
        self._handlers = StoreHandlers()
        self._events: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False  # guarded by self._lock
        self._time = time  # constant after construction
        self._tree = tree if tree is not None else ZnodeTree(Path(path), time)
        self._session_id = self._tree.open_session(self._queue_event)  # written by the event thread
        self._event_thread = threading.Thread(
            target=self._run_events, name="embedded-store-events", daemon=True
        )
        self._event_thread.start()

    def new_session(self) -> EmbeddedStore:
        """Another client of the same tree, for several brokers in one process."""
        return EmbeddedStore(self._tree.path, self._time, tree=self._tree)

    @property
    def session_id(self) -> int:
        return self._session_id

    def handle_requests(self, requests: Sequence[Request]) -> list[Response]:
        self._ensure_open()
        return self._tree.handle_requests(self._session_id, requests, self._handlers.should_watch)

    def wait_until_connected(self) -> None:
        self._ensure_open()

    def register_znode_change_handler(self, handler: ZNodeChangeHandler) -> None:
        self._handlers.register_change(handler)

    def unregister_znode_change_handler(self, path: str) -> None:
        self._handlers.unregister_change(path)

    def register_znode_child_change_handler(self, handler: ZNodeChildChangeHandler) -> None:
        self._handlers.register_child_change(handler)

    def unregister_znode_child_change_handler(self, path: str) -> None:
        self._handlers.unregister_child_change(path)

    def register_state_change_handler(self, handler: StateChangeHandler) -> None:
        self._handlers.register_state_change(handler)

    def unregister_state_change_handler(self, name: str) -> None:
        self._handlers.unregister_state_change(name)

    def expire_session(self) -> None:
        """End the session as ZooKeeper does when it hears nothing from a client for too long.

        Returns at once; the handlers are told, and the next session begun, on the event thread.
        """
        self._tree.close_session(self._session_id)
        self._events.put(self._reinitialize)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._events.put(None)
        if threading.current_thread() is not self._event_thread:
            self._event_thread.join()
        try:
            self._tree.close_session(self._session_id)
        finally:
            if not self._tree.has_sessions:
                self._tree.close()

    def _ensure_open(self) -> None:
        if self._closed:
            raise StoreClosedError(f"Metadata store {self._tree.path} is closed")

    def _reinitialize(self) -> None:
        self._handlers.before_initializing_session()
        self._session_id = self._tree.open_session(self._queue_event)
        self._handlers.after_initializing_session()

    def _queue_event(self, event: WatchedEvent) -> None:
        self._events.put(lambda: self._handlers.dispatch(event))

    def _run_events(self) -> None:
        while (task := self._events.get()) is not None:
            task()
