from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from kafkapy.zk.metadata_store import (
    CreateRequest,
    Request,
    Response,
    SessionExpiredError,
    StateChangeHandler,
    StoreClosedError,
    StoreCode,
    StoreTimeoutError,
    WatchedEvent,
    ZNodeChangeHandler,
    ZNodeChildChangeHandler,
)
from kafkapy.zk.store_handlers import StoreHandlers
from kafkapy.zk.zookeeper_session import ZooKeeperSession

log = logging.getLogger(__name__)

_REINITIALIZE_BACKOFF_SECONDS = 1.0


class ZooKeeperClient:
    """A session with ZooKeeper that is replaced by the next one when it expires. Thread-safe.

    Requests are pipelined, at most `max_in_flight_requests` of one caller at a time. Handlers, also
    those of a change of session, run one after the other on the client's event thread. When a
    connection is lost and found again within a session, watches are set again and what was missed
    is reported.

    Ports: kafka.zookeeper.ZooKeeperClient
    """

    def __init__(
        self,
        connect_string: str,
        *,
        session_timeout_ms: int = 18_000,
        connection_timeout_ms: int = 18_000,
        max_in_flight_requests: int = 10,
    ) -> None:
        self._connect_string = connect_string  # constant after construction
        self._session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._max_in_flight = max_in_flight_requests
        self._handlers = StoreHandlers()
        self._events: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._stopping = threading.Event()
        self._state = threading.Condition()
        self._closed = False  # guarded by self._state, like all below
        self._create_chroot()
        self._session = self._new_session(connect_string)
        self._start(self._session)
        self._event_thread = threading.Thread(
            target=self._run_events, name="zookeeper-events", daemon=True
        )
        self._event_thread.start()

    @property
    def session_id(self) -> int:
        return self._session.session_id

    def handle_requests(self, requests: Sequence[Request]) -> list[Response]:
        session = self._open_session()
        return session.handle_requests(requests, self._max_in_flight, self._handlers.should_watch)

    def wait_until_connected(self) -> None:
        """Also SessionExpiredError: what was to be sent belongs to a session that is over."""
        session = self._open_session()
        with self._state:
            self._state.wait_for(lambda: self._closed or session.connected or session.lost)
            if self._closed:
                raise StoreClosedError(f"The client of ZooKeeper {self._connect_string} is closed")
            if session.lost:
                raise SessionExpiredError(StoreCode.SESSION_EXPIRED, None)

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

    def close(self) -> None:
        """End the session, so that its ephemeral znodes go at once."""
        with self._state:
            if self._closed:
                return
            self._closed = True
            self._state.notify_all()
        self._stopping.set()
        self._events.put(None)
        if threading.current_thread() is not self._event_thread:
            self._event_thread.join()
        self._session.stop()

    def _open_session(self) -> ZooKeeperSession:
        with self._state:
            if self._closed:
                raise StoreClosedError(f"The client of ZooKeeper {self._connect_string} is closed")
            return self._session

    def _create_chroot(self) -> None:
        """Make the path behind the hosts of the connect string, inside which all others lie."""
        hosts, _, chroot = self._connect_string.partition("/")
        if not chroot:
            return
        segments = chroot.split("/")
        paths = ["/" + "/".join(segments[: i + 1]) for i in range(len(segments))]
        session = self._new_session(hosts)
        self._start(session)
        try:
            requests = [CreateRequest(path) for path in paths]
            for response in session.handle_requests(requests, self._max_in_flight, lambda _: False):
                if response.result_code is not StoreCode.NODE_EXISTS:
                    response.maybe_raise()
        finally:
            session.stop()

    def _start(self, session: ZooKeeperSession) -> None:
        try:
            session.start(self._connection_timeout_ms)
        except BaseException:
            session.stop()
            raise

    def _new_session(self, connect_string: str) -> ZooKeeperSession:
        return ZooKeeperSession(
            connect_string,
            self._session_timeout_ms,
            self._state,
            deliver=self._deliver,
            on_reconnect=self._on_reconnect,
            on_lost=self._on_lost,
        )

    # Called by kazoo's threads

    def _deliver(self, event: WatchedEvent) -> None:
        self._events.put(lambda: self._handlers.dispatch(event))

    def _on_reconnect(self, session: ZooKeeperSession) -> None:
        self._events.put(lambda: self._restore_watches(session))

    def _on_lost(self, session: ZooKeeperSession) -> None:
        self._events.put(lambda: self._reinitialize(session))

    # On the event thread

    def _run_events(self) -> None:
        while (task := self._events.get()) is not None:
            task()

    def _restore_watches(self, session: ZooKeeperSession) -> None:
        for event in session.restore_watches():
            self._handlers.dispatch(event)

    def _reinitialize(self, lost: ZooKeeperSession) -> None:
        log.warning("The session with ZooKeeper %s is over, starting another", self._connect_string)
        if lost.auth_failed:
            self._handlers.on_auth_failure()
        self._handlers.before_initializing_session()
        lost.stop()
        while not self._stopping.is_set():
            session = self._new_session(self._connect_string)
            with self._state:
                self._session = session
            try:
                self._start(session)
                break
            except StoreTimeoutError as e:
                log.warning("%s; trying again", e)
                self._stopping.wait(_REINITIALIZE_BACKOFF_SECONDS)
        if not self._stopping.is_set():
            self._handlers.after_initializing_session()
