import pytest

from kafkapy.zk.metadata_store import (
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    Response,
    Stat,
    StoreCode,
    WatchedEvent,
)
from kafkapy.zk.zookeeper_watches import ZooKeeperWatches

DATA, CHILDREN = ExistsRequest("/a"), GetChildrenRequest("/a")
MISSING = Response("/a", StoreCode.NO_NODE)


def there(*, mzxid: int = 1, pzxid: int = 1) -> Response:
    return Response("/a", StoreCode.OK, stat=Stat(mzxid=mzxid, pzxid=pzxid))


@pytest.mark.parametrize(
    ("request_", "before", "now", "event"),
    [
        (DATA, MISSING, there(), EventType.NODE_CREATED),
        (DATA, there(), MISSING, EventType.NODE_DELETED),
        (DATA, there(), there(mzxid=2), EventType.NODE_DATA_CHANGED),
        (CHILDREN, there(), there(pzxid=2), EventType.NODE_CHILDREN_CHANGED),
        (DATA, there(), there(pzxid=2), None),
        (CHILDREN, there(), there(mzxid=2), None),
        (DATA, MISSING, MISSING, None),
        (CHILDREN, there(), MISSING, None),
        (DATA, there(), Response("/a", StoreCode.CONNECTION_LOSS), None),
        (DATA, None, there(), None),
    ],
)
def test_missed_event_is_what_the_watch_would_have_reported(
    request_: ExistsRequest | GetChildrenRequest,
    before: Response | None,
    now: Response,
    event: EventType | None,
) -> None:
    missed = ZooKeeperWatches.missed_event(request_, before, now)

    assert missed == (WatchedEvent(event, "/a") if event else None)


def test_reads_that_set_a_watch_are_repeated() -> None:
    watches = ZooKeeperWatches()

    watches.record(GetDataRequest("/a"), there())
    watches.record(ExistsRequest("/missing"), MISSING)
    watches.record(GetDataRequest("/unread"), MISSING)
    watches.record(GetChildrenRequest("/a"), there())

    assert watches.requests() == [DATA, ExistsRequest("/missing"), CHILDREN]


@pytest.mark.parametrize(
    ("event", "left"),
    [
        (EventType.NODE_DATA_CHANGED, [CHILDREN]),
        (EventType.NODE_CHILDREN_CHANGED, [DATA]),
        (EventType.NODE_DELETED, []),
    ],
)
def test_fired_watch_is_gone(event: EventType, left: list[object]) -> None:
    watches = ZooKeeperWatches()
    watches.record(DATA, there())
    watches.record(CHILDREN, there())

    watches.fired(WatchedEvent(event, "/a"))

    assert watches.requests() == left
