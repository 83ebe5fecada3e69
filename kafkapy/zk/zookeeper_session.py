from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kafkapy.zk.metadata_store import (
    CheckOp,
    CreateRequest,
    DeleteRequest,
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    Request,
    Response,
    SetDataRequest,
    Stat,
    StoreCode,
    StoreTimeoutError,
    WatchedEvent,
    ZkOp,
)
from kafkapy.zk.zookeeper_watches import ZooKeeperWatches

_STOP_CHECK_SECONDS = 0.2
_EVENT_TYPES = {
    "CREATED": EventType.NODE_CREATED,
    "DELETED": EventType.NODE_DELETED,
    "CHANGED": EventType.NODE_DATA_CHANGED,
    "CHILD": EventType.NODE_CHILDREN_CHANGED,
}


class ZooKeeperSession:
    """One ZooKeeper session: a kazoo client until it is lost. Thread-safe.

    Ports: org.apache.zookeeper.ZooKeeper
    """

    def __init__(
        self,
        connect_string: str,
        session_timeout_ms: int,
        state: threading.Condition,
        *,
        deliver: Callable[[WatchedEvent], None],
        on_reconnect: Callable[[ZooKeeperSession], None],
        on_lost: Callable[[ZooKeeperSession], None],
    ) -> None:
        # Imported late: a broker with an embedded store does without.
        from kazoo.client import KazooClient
        from kazoo.retry import KazooRetry

        self._connect_string = connect_string  # constant after construction
        self._deliver = deliver
        self._on_reconnect = on_reconnect
        self._on_lost = on_lost
        self._kazoo = KazooClient(
            hosts=connect_string,
            timeout=session_timeout_ms / 1000,
            connection_retry=KazooRetry(max_tries=-1, delay=0.2, backoff=2, max_delay=1.0),
        )
        self._kazoo.add_listener(self._on_state)
        self._watches = ZooKeeperWatches()
        self._state = state
        self.connected = False  # guarded by self._state, like all below
        self.lost = False
        self.auth_failed = False
        self._was_connected = False
        self._stopped = False

    @property
    def session_id(self) -> int:
        client_id = self._kazoo.client_id
        return int(client_id[0]) if client_id else 0

    def start(self, timeout_ms: int) -> None:
        """StoreTimeoutError when no server answers in time."""
        self._kazoo.start_async()
        with self._state:
            self._state.wait_for(lambda: self.connected or self.lost, timeout_ms / 1000)
            if not self.connected:
                raise StoreTimeoutError(
                    f"No connection to ZooKeeper {self._connect_string} within {timeout_ms} ms"
                )

    def stop(self) -> None:
        with self._state:
            self._stopped = True
            self.connected = False
            self.lost = True
            self._state.notify_all()
        self._kazoo.stop()
        self._kazoo.close()

    def handle_requests(
        self,
        requests: Sequence[Request],
        max_in_flight: int,
        should_watch: Callable[[Request], bool],
    ) -> list[Response]:
        if self.lost:
            return [Response(r.path, StoreCode.SESSION_EXPIRED) for r in requests]
        responses: list[Response] = []
        in_flight: deque[tuple[Request, Any, bool]] = deque()
        for request in requests:
            if len(in_flight) >= max_in_flight:
                responses.append(self._receive(*in_flight.popleft()))
            watched = should_watch(request)
            answer = self._send(request, self._on_watch if watched else None)
            in_flight.append((request, answer, watched))
        responses.extend(self._receive(*sent) for sent in in_flight)
        return responses

    def restore_watches(self) -> list[WatchedEvent]:
        """Read again everything that is watched, which sets the watches; the changes missed."""
        requests = self._watches.requests()
        answers = [(request, self._send(request, self._on_watch)) for request in requests]
        events = []
        for request, answer in answers:
            before = self._watches.last_seen(request)
            now = self._receive(request, answer, True)
            event = ZooKeeperWatches.missed_event(request, before, now)
            if event is not None:
                events.append(event)
        return events

    def _send(self, request: Request, watch: Callable[[Any], None] | None) -> Any:
        match request:
            case ExistsRequest(path):
                return self._kazoo.exists_async(path, watch=watch)
            case GetDataRequest(path):
                return self._kazoo.get_async(path, watch=watch)
            case GetChildrenRequest(path):
                return self._kazoo.get_children_async(path, watch=watch, include_data=True)
            case CreateRequest(path, data, mode):
                return self._kazoo.create_async(
                    path,
                    data,
                    ephemeral=mode.ephemeral,
                    sequence=mode.sequential,
                    include_data=True,
                )
            case DeleteRequest(path, version):
                return self._kazoo.delete_async(path, version)
            case SetDataRequest(path, data, version):
                return self._kazoo.set_async(path, data, version)
            case MultiRequest(ops):
                transaction = self._kazoo.transaction()
                for op in ops:
                    _add_to(transaction, op)
                return transaction.commit_async()

    def _receive(self, request: Request, answer: Any, watched: bool, /) -> Response:
        from kazoo.exceptions import KazooException

        # A stopped kazoo no longer completes what it was asked: never wait for it alone.
        while not answer.wait(_STOP_CHECK_SECONDS):
            if self._stopped:
                return Response(request.path, StoreCode.SESSION_EXPIRED)
            if not self.connected and self._withdraw(answer):
                return Response(request.path, StoreCode.CONNECTION_LOSS)
        try:
            response = _response(request, answer.get())
        except KazooException as e:
            response = Response(request.path, _code(e))
        if watched:
            self._watches.record(request, response)
        return response

    def _withdraw(self, answer: Any) -> bool:
        """Take back what was asked just after the connection had been lost.

        Kazoo fails what it had queued when a connection goes, and keeps what comes later until
        there is another one: by then its caller, told of the loss, has long asked again.
        """
        queue = self._kazoo._queue
        for queued in tuple(queue):
            if queued[1] is answer:
                try:
                    queue.remove(queued)
                except ValueError:
                    return False  # it is being sent after all
                return True
        return False

    # Called by kazoo's threads

    def _on_watch(self, event: Any) -> None:
        """Events without a path tell of the connection, which `_on_state` hears about."""
        if event.path is None or event.type not in _EVENT_TYPES:
            return
        watched_event = WatchedEvent(_EVENT_TYPES[event.type], event.path)
        self._watches.fired(watched_event)
        self._deliver(watched_event)

    def _on_state(self, state: str) -> None:
        """Kazoo would open a new session by itself: whoever hears of the loss stops it first."""
        from kazoo.client import KazooState
        from kazoo.protocol.states import KeeperState

        with self._state:
            if self._stopped:
                return
            self.connected = state == KazooState.CONNECTED
            just_lost = state == KazooState.LOST and not self.lost
            self.lost = self.lost or just_lost
            self.auth_failed = self._kazoo.client_state == KeeperState.AUTH_FAILED
            reconnected = self.connected and self._was_connected
            self._was_connected = self._was_connected or self.connected
            self._state.notify_all()
        if just_lost:
            self._on_lost(self)
        elif reconnected:
            self._on_reconnect(self)


def _add_to(transaction: Any, op: ZkOp) -> None:
    """Kazoo's transactions know no null data: empty data stands for it."""
    match op:
        case CreateRequest(path, data, mode):
            transaction.create(
                path, data or b"", ephemeral=mode.ephemeral, sequence=mode.sequential
            )
        case DeleteRequest(path, version):
            transaction.delete(path, version)
        case SetDataRequest(path, data, version):
            transaction.set_data(path, data or b"", version)
        case CheckOp(path, version):
            transaction.check(path, version)


def _response(request: Request, value: Any) -> Response:
    match request:
        case ExistsRequest(path):
            if value is None:
                return Response(path, StoreCode.NO_NODE)
            return Response(path, StoreCode.OK, stat=_stat(value))
        case GetDataRequest(path):
            return Response(path, StoreCode.OK, data=value[0], stat=_stat(value[1]))
        case GetChildrenRequest(path):
            children = tuple(sorted(value[0]))
            return Response(path, StoreCode.OK, stat=_stat(value[1]), children=children)
        case CreateRequest(path):
            return Response(path, StoreCode.OK, name=value[0], stat=_stat(value[1]))
        case DeleteRequest(path):
            return Response(path, StoreCode.OK)
        case SetDataRequest(path):
            return Response(path, StoreCode.OK, stat=_stat(value))
        case MultiRequest(ops):
            results = tuple(_op_result(op, v) for op, v in zip(ops, value, strict=True))
            harmless = (StoreCode.OK, StoreCode.RUNTIME_INCONSISTENCY)
            failed = next((r for r in results if r.result_code not in harmless), None)
            if failed is None:
                return Response(request.path, StoreCode.OK, results=results)
            return Response(failed.path, failed.result_code, results=results)


def _op_result(op: ZkOp, value: Any) -> Response:
    from kazoo.exceptions import KazooException

    if isinstance(value, KazooException):
        return Response(op.path, _code(value))
    match op:
        case CreateRequest(path):
            return Response(path, StoreCode.OK, name=value)
        case SetDataRequest(path):
            return Response(path, StoreCode.OK, stat=_stat(value))
        case DeleteRequest(path) | CheckOp(path):
            return Response(path, StoreCode.OK)


def _code(error: Any) -> StoreCode:
    """Kazoo numbers its exceptions as ZooKeeper numbers its codes."""
    try:
        return StoreCode(error.code)
    except (AttributeError, ValueError):
        return StoreCode.SYSTEM_ERROR


def _stat(stat: Any) -> Stat:
    return Stat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        pzxid=stat.pzxid,
        ctime=stat.ctime,
        mtime=stat.mtime,
        version=stat.version,
        cversion=stat.cversion,
        ephemeral_owner=stat.ephemeralOwner,
        data_length=stat.dataLength,
        num_children=stat.numChildren,
    )
