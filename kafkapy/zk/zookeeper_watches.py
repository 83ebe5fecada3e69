import threading

from kafkapy.zk.metadata_store import (
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    Request,
    Response,
    StoreCode,
    WatchedEvent,
)


class ZooKeeperWatches:
    """The watches of a session and what was seen when each was set. Thread-safe.

    ZooKeeper's Java client sets its watches again after a lost connection and the server reports
    the changes in between; kazoo forgets them, so the reading and comparing is done here.

    Ports: org.apache.zookeeper.ZooKeeper (its watch manager)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._data: dict[str, Response] = {}  # guarded by self._lock, like all below
        self._children: dict[str, Response] = {}

    def record(self, request: Request, response: Response) -> None:
        """A read that set a watch; one that failed has set none."""
        with self._lock:
            match request, response.result_code:
                case ExistsRequest(path), StoreCode.OK | StoreCode.NO_NODE:
                    self._data[path] = response
                case GetDataRequest(path), StoreCode.OK:
                    self._data[path] = response
                case GetChildrenRequest(path), StoreCode.OK:
                    self._children[path] = response

    def fired(self, event: WatchedEvent) -> None:
        with self._lock:
            if event.type is not EventType.NODE_CHILDREN_CHANGED:
                self._data.pop(event.path, None)
            if event.type in (EventType.NODE_CHILDREN_CHANGED, EventType.NODE_DELETED):
                self._children.pop(event.path, None)

    def requests(self) -> list[ExistsRequest | GetChildrenRequest]:
        """The reads that set every watch again."""
        with self._lock:
            data = [ExistsRequest(path) for path in self._data]
            return [*data, *(GetChildrenRequest(path) for path in self._children)]

    def last_seen(self, request: ExistsRequest | GetChildrenRequest) -> Response | None:
        with self._lock:
            watches = self._data if isinstance(request, ExistsRequest) else self._children
            return watches.get(request.path)

    @staticmethod
    def missed_event(
        request: ExistsRequest | GetChildrenRequest, before: Response | None, now: Response
    ) -> WatchedEvent | None:
        """What a watch set when `before` was read would have reported by `now`."""
        if before is None or now.result_code not in (StoreCode.OK, StoreCode.NO_NODE):
            return None
        if isinstance(request, GetChildrenRequest):
            if now.stat is None or before.stat is None or now.stat.pzxid == before.stat.pzxid:
                return None
            return WatchedEvent(EventType.NODE_CHILDREN_CHANGED, request.path)
        if before.stat is None:
            return WatchedEvent(EventType.NODE_CREATED, request.path) if now.stat else None
        if now.stat is None:
            return WatchedEvent(EventType.NODE_DELETED, request.path)
        if now.stat.mzxid != before.stat.mzxid:
            return WatchedEvent(EventType.NODE_DATA_CHANGED, request.path)
        return None
