"""What every MetadataStore promises."""

import threading

import pytest

from kafkapy.zk.metadata_store import (
    CheckOp,
    CreateMode,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MetadataStore,
    MultiRequest,
    NoNodeError,
    Request,
    Response,
    SetDataRequest,
    StoreClosedError,
    StoreCode,
)
from tests.helpers.waiting import wait_until
from tests.unit.zk.conftest import OpenSession
from tests.unit.zk.handlers import RecordingChangeHandler, RecordingChildHandler


def send(store: MetadataStore, request: Request) -> Response:
    return store.handle_requests([request])[0]


def code(store: MetadataStore, request: Request) -> StoreCode:
    return send(store, request).result_code


def settle(store: MetadataStore) -> None:
    """Return when every event of changes made so far has been handled."""
    handler = RecordingChangeHandler("/settle")
    store.register_znode_change_handler(handler)
    send(store, ExistsRequest("/settle"))
    send(store, CreateRequest("/settle"))
    assert handler.next() == "created"
    store.unregister_znode_change_handler("/settle")
    send(store, DeleteRequest("/settle"))


def test_created_znode_can_be_read(store: MetadataStore) -> None:
    created = send(store, CreateRequest("/a", b"data"))

    read = send(store, GetDataRequest("/a"))
    assert created.ok and created.name == "/a" and created.stat is not None
    assert read.data == b"data"
    assert read.stat is not None and read.stat.version == 0
    assert read.stat.czxid == read.stat.mzxid == created.stat.czxid
    assert read.stat.data_length == 4


def test_responses_come_in_the_order_of_requests(store: MetadataStore) -> None:
    requests: list[Request] = [CreateRequest(f"/n{i}", str(i).encode()) for i in range(50)]
    requests += [GetDataRequest(f"/n{i}") for i in range(50)]

    responses = store.handle_requests(requests)

    assert [r.name for r in responses[:50]] == [f"/n{i}" for i in range(50)]
    assert [r.data for r in responses[50:]] == [str(i).encode() for i in range(50)]


def test_failed_request_does_not_stop_those_behind_it(store: MetadataStore) -> None:
    responses = store.handle_requests(
        [CreateRequest("/a"), CreateRequest("/a"), DeleteRequest("/none"), CreateRequest("/b")]
    )

    codes = [r.result_code for r in responses]
    assert codes == [StoreCode.OK, StoreCode.NODE_EXISTS, StoreCode.NO_NODE, StoreCode.OK]


@pytest.mark.parametrize(
    "request_",
    [
        ExistsRequest("/none"),
        GetDataRequest("/none"),
        GetChildrenRequest("/none"),
        SetDataRequest("/none", b""),
        DeleteRequest("/none"),
        CreateRequest("/none/child"),
    ],
)
def test_missing_znode_is_no_node(store: MetadataStore, request_: Request) -> None:
    response = send(store, request_)

    assert response.result_code is StoreCode.NO_NODE
    with pytest.raises(NoNodeError, match="/none"):
        response.maybe_raise()


def test_null_data_is_kept_apart_from_text(store: MetadataStore) -> None:
    send(store, CreateRequest("/a", None))

    assert not send(store, GetDataRequest("/a")).data


def test_set_increments_version_and_zxid(store: MetadataStore) -> None:
    created = send(store, CreateRequest("/a", b"1")).stat_or_raise()

    changed = send(store, SetDataRequest("/a", b"2", version=0)).stat_or_raise()

    assert changed.version == 1
    assert changed.mzxid > created.mzxid
    assert changed.czxid == created.czxid


@pytest.mark.parametrize("version", [1, 7])
def test_write_with_another_version_is_refused(store: MetadataStore, version: int) -> None:
    send(store, CreateRequest("/a", b"1"))

    codes = (
        code(store, SetDataRequest("/a", b"2", version)),
        code(store, DeleteRequest("/a", version)),
    )

    assert codes == (StoreCode.BAD_VERSION, StoreCode.BAD_VERSION)
    assert send(store, GetDataRequest("/a")).data == b"1"


def test_znode_with_children_cannot_be_deleted(store: MetadataStore) -> None:
    store.handle_requests([CreateRequest("/a"), CreateRequest("/a/b")])

    assert code(store, DeleteRequest("/a")) is StoreCode.NOT_EMPTY
    assert code(store, DeleteRequest("/a/b")) is StoreCode.OK
    assert code(store, DeleteRequest("/a")) is StoreCode.OK


def test_children_are_names_with_the_parents_stat(store: MetadataStore) -> None:
    store.handle_requests([CreateRequest(p) for p in ("/a", "/a/c", "/a/b", "/a/b/x", "/ab")])

    response = send(store, GetChildrenRequest("/a"))

    assert response.children == ("b", "c")
    assert response.stat is not None
    assert (response.stat.num_children, response.stat.cversion) == (2, 2)


def test_sequential_znodes_are_numbered_even_past_deleted_ones(store: MetadataStore) -> None:
    send(store, CreateRequest("/a"))
    request = CreateRequest("/a/n_", b"", CreateMode.PERSISTENT_SEQUENTIAL)

    first = send(store, request).name
    send(store, DeleteRequest(first or ""))
    second = send(store, request).name

    assert (first, second) == ("/a/n_0000000000", "/a/n_0000000001")


def test_ephemeral_belongs_to_its_session(store: MetadataStore) -> None:
    created = send(store, CreateRequest("/e", b"", CreateMode.EPHEMERAL)).stat_or_raise()

    assert created.ephemeral_owner == store.session_id != 0
    assert code(store, CreateRequest("/e/child")) is StoreCode.NO_CHILDREN_FOR_EPHEMERALS


def test_ephemeral_goes_with_its_session(open_session: OpenSession) -> None:
    staying, leaving = open_session(), open_session()
    handler = RecordingChangeHandler("/e")
    staying.register_znode_change_handler(handler)
    send(leaving, CreateRequest("/e", b"", CreateMode.EPHEMERAL))
    send(leaving, CreateRequest("/p", b""))
    assert send(staying, ExistsRequest("/e")).ok

    leaving.close()

    assert handler.next() == "deleted"
    assert not send(staying, ExistsRequest("/e")).ok
    assert send(staying, ExistsRequest("/p")).ok


def test_multi_does_all(store: MetadataStore) -> None:
    store.handle_requests([CreateRequest("/a", b"1"), CreateRequest("/gone")])

    response = send(
        store,
        MultiRequest(
            (
                CheckOp("/a", 0),
                SetDataRequest("/a", b"2", 0),
                CreateRequest("/b", b"3"),
                DeleteRequest("/gone"),
            )
        ),
    )

    assert response.ok
    assert [r.result_code for r in response.results] == [StoreCode.OK] * 4
    assert response.results[1].stat_or_raise().version == 1
    assert response.results[2].name == "/b"
    assert send(store, GetDataRequest("/a")).data == b"2"
    assert send(store, GetDataRequest("/b")).data == b"3"
    assert not send(store, ExistsRequest("/gone")).ok


def test_multi_that_fails_does_nothing(store: MetadataStore) -> None:
    store.handle_requests([CreateRequest("/a", b"1"), CreateRequest("/b", b"1")])

    response = send(
        store,
        MultiRequest(
            (
                SetDataRequest("/a", b"2"),
                CreateRequest("/c"),
                SetDataRequest("/b", b"2", version=5),
                DeleteRequest("/a"),
            )
        ),
    )

    assert response.result_code is StoreCode.BAD_VERSION
    assert response.path == "/b"
    assert [r.result_code for r in response.results] == [
        StoreCode.OK,
        StoreCode.OK,
        StoreCode.BAD_VERSION,
        StoreCode.RUNTIME_INCONSISTENCY,
    ]
    assert send(store, GetDataRequest("/a")).data == b"1"
    assert not send(store, ExistsRequest("/c")).ok


def test_multi_check_of_another_version_fails(store: MetadataStore) -> None:
    send(store, CreateRequest("/a"))

    failed = send(store, MultiRequest((CheckOp("/a", 3), CreateRequest("/b"))))
    missing = send(store, MultiRequest((CheckOp("/none", 0), CreateRequest("/b"))))

    assert failed.results[0].result_code is StoreCode.BAD_VERSION
    assert missing.results[0].result_code is StoreCode.NO_NODE
    assert not send(store, ExistsRequest("/b")).ok


def test_change_handler_sees_creation_change_and_deletion(store: MetadataStore) -> None:
    handler = RecordingChangeHandler("/a")
    store.register_znode_change_handler(handler)
    steps: list[tuple[Request, Request, str]] = [
        (ExistsRequest("/a"), CreateRequest("/a", b"1"), "created"),
        (GetDataRequest("/a"), SetDataRequest("/a", b"2"), "changed"),
        (ExistsRequest("/a"), DeleteRequest("/a"), "deleted"),
    ]

    for read, change, event in steps:
        send(store, read)
        send(store, change)
        assert handler.next() == event
    assert len(handler.threads) == 1
    assert threading.current_thread().name not in handler.threads


def test_registering_alone_sets_no_watch(store: MetadataStore) -> None:
    handler = RecordingChangeHandler("/a")
    store.register_znode_change_handler(handler)

    send(store, CreateRequest("/a"))
    settle(store)

    assert handler.pending == []


def test_watch_fires_once_until_the_next_read(store: MetadataStore) -> None:
    send(store, CreateRequest("/a", b"0"))
    handler = RecordingChangeHandler("/a")
    store.register_znode_change_handler(handler)
    send(store, GetDataRequest("/a"))

    store.handle_requests([SetDataRequest("/a", b"1"), SetDataRequest("/a", b"2")])
    settle(store)
    seen = handler.pending
    send(store, GetDataRequest("/a"))
    send(store, SetDataRequest("/a", b"3"))

    assert seen == ["changed"]
    assert handler.next() == "changed"


def test_read_of_a_missing_znodes_data_sets_no_watch(store: MetadataStore) -> None:
    handler = RecordingChangeHandler("/a")
    store.register_znode_change_handler(handler)
    send(store, GetDataRequest("/a"))

    send(store, CreateRequest("/a"))
    settle(store)

    assert handler.pending == []


def test_child_handler_sees_children_come_and_go(store: MetadataStore) -> None:
    store.handle_requests([CreateRequest("/a"), CreateRequest("/a/old")])
    handler = RecordingChildHandler("/a")
    store.register_znode_child_change_handler(handler)

    for change in (CreateRequest("/a/new"), DeleteRequest("/a/old")):
        send(store, GetChildrenRequest("/a"))
        send(store, change)
        assert handler.next() == "children"
    send(store, GetChildrenRequest("/a"))
    store.handle_requests([SetDataRequest("/a/new", b"x"), CreateRequest("/a/new/deeper")])
    settle(store)

    assert handler.pending == []


def test_listing_without_watch_leaves_the_child_handler_alone(store: MetadataStore) -> None:
    send(store, CreateRequest("/a"))
    handler = RecordingChildHandler("/a")
    store.register_znode_child_change_handler(handler)

    send(store, GetChildrenRequest("/a", register_watch=False))
    send(store, CreateRequest("/a/b"))
    settle(store)

    assert handler.pending == []


def test_unregistered_handlers_hear_nothing(store: MetadataStore) -> None:
    send(store, CreateRequest("/a"))
    handlers = RecordingChangeHandler("/a"), RecordingChildHandler("/a")
    store.register_znode_change_handler(handlers[0])
    store.register_znode_child_change_handler(handlers[1])
    store.handle_requests([ExistsRequest("/a"), GetChildrenRequest("/a")])

    store.unregister_znode_change_handler("/a")
    store.unregister_znode_child_change_handler("/a")
    store.handle_requests([SetDataRequest("/a", b"x"), CreateRequest("/a/b")])
    settle(store)

    assert handlers[0].pending == handlers[1].pending == []


def test_handler_that_fails_does_not_stop_the_others(store: MetadataStore) -> None:
    class Failing(RecordingChangeHandler):
        def handle_creation(self) -> None:
            super().handle_creation()
            raise RuntimeError("on purpose")

    failing, other = Failing("/a"), RecordingChangeHandler("/b")
    for handler in (failing, other):
        store.register_znode_change_handler(handler)
        send(store, ExistsRequest(handler.path))

    store.handle_requests([CreateRequest("/a"), CreateRequest("/b")])

    assert (failing.next(), other.next()) == ("created", "created")


def test_handler_may_use_the_store(store: MetadataStore) -> None:
    class Reading(RecordingChangeHandler):
        def handle_creation(self) -> None:
            self.note(str(send(store, GetDataRequest("/a")).data))

    handler = Reading("/a")
    store.register_znode_change_handler(handler)
    send(store, ExistsRequest("/a"))

    send(store, CreateRequest("/a", b"x"))

    assert handler.next() == "b'x'"


def test_changes_of_another_session_are_seen(open_session: OpenSession) -> None:
    reader, writer = open_session(), open_session()
    handler = RecordingChildHandler("/a")
    send(writer, CreateRequest("/a"))
    wait_until(lambda: send(reader, ExistsRequest("/a")).ok)
    reader.register_znode_child_change_handler(handler)
    send(reader, GetChildrenRequest("/a"))

    send(writer, CreateRequest("/a/b"))

    assert handler.next() == "children"
    assert send(reader, GetChildrenRequest("/a")).children == ("b",)


def test_closed_store_refuses_requests(store: MetadataStore) -> None:
    store.close()
    store.close()

    with pytest.raises(StoreClosedError):
        send(store, ExistsRequest("/a"))
    with pytest.raises(StoreClosedError):
        store.wait_until_connected()
