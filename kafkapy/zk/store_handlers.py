import logging
import threading
from collections.abc import Callable

from kafkapy.zk.metadata_store import (
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    Request,
    StateChangeHandler,
    WatchedEvent,
    ZNodeChangeHandler,
    ZNodeChildChangeHandler,
)

log = logging.getLogger(__name__)


class StoreHandlers:
    """The handlers registered with a store, by path and by name. Thread-safe.

    Calls to handlers are made without the lock; one that fails is logged and the next one runs.

    Ports: kafka.zookeeper.ZooKeeperClient (its handler maps and its watcher)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._change: dict[str, ZNodeChangeHandler] = {}  # guarded by self._lock, like all below
        self._child_change: dict[str, ZNodeChildChangeHandler] = {}
        self._state_change: dict[str, StateChangeHandler] = {}

    def register_change(self, handler: ZNodeChangeHandler) -> None:
        with self._lock:
            self._change[handler.path] = handler

    def unregister_change(self, path: str) -> None:
        with self._lock:
            self._change.pop(path, None)

    def register_child_change(self, handler: ZNodeChildChangeHandler) -> None:
        with self._lock:
            self._child_change[handler.path] = handler

    def unregister_child_change(self, path: str) -> None:
        with self._lock:
            self._child_change.pop(path, None)

    def register_state_change(self, handler: StateChangeHandler) -> None:
        with self._lock:
            self._state_change[handler.name] = handler

    def unregister_state_change(self, name: str) -> None:
        with self._lock:
            self._state_change.pop(name, None)

    def should_watch(self, request: Request) -> bool:
        with self._lock:
            match request:
                case ExistsRequest(path) | GetDataRequest(path):
                    return path in self._change
                case GetChildrenRequest(path, register_watch):
                    return register_watch and path in self._child_change
                case _:
                    return False

    def dispatch(self, event: WatchedEvent) -> None:
        with self._lock:
            change = self._change.get(event.path)
            child_change = self._child_change.get(event.path)
        match event.type:
            case EventType.NODE_CHILDREN_CHANGED if child_change is not None:
                _call(child_change.handle_child_change, event)
            case EventType.NODE_CREATED if change is not None:
                _call(change.handle_creation, event)
            case EventType.NODE_DELETED if change is not None:
                _call(change.handle_deletion, event)
            case EventType.NODE_DATA_CHANGED if change is not None:
                _call(change.handle_data_change, event)

    def before_initializing_session(self) -> None:
        for handler in self._state_change_handlers():
            _call(handler.before_initializing_session, handler.name)

    def after_initializing_session(self) -> None:
        for handler in self._state_change_handlers():
            _call(handler.after_initializing_session, handler.name)

    def on_auth_failure(self) -> None:
        for handler in self._state_change_handlers():
            _call(handler.on_auth_failure, handler.name)

    def _state_change_handlers(self) -> list[StateChangeHandler]:
        with self._lock:
            return list(self._state_change.values())


def _call(method: Callable[[], None], subject: object) -> None:
    try:
        method()
    except Exception:
        log.exception("Handler %s failed for %s", method.__qualname__, subject)
