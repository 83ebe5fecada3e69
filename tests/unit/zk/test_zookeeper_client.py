"""What a ZooKeeperClient does beyond every MetadataStore: losing connections and sessions."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import (
    CreateMode,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    SessionExpiredError,
    SetDataRequest,
    StoreCode,
    StoreTimeoutError,
)
from kafkapy.zk.zookeeper_client import ZooKeeperClient
from tests.helpers.mock_time import MockTime
from tests.helpers.waiting import wait_until
from tests.helpers.zookeeper_server import ZooKeeperServer
from tests.unit.zk.handlers import (
    RecordingChangeHandler,
    RecordingChildHandler,
    RecordingStateHandler,
)
from tests.unit.zk.tcp_proxy import TcpProxy

_chroots = count()
Connect = Callable[[int, int], ZooKeeperClient]
# Longer than any pause of a busy machine, so that only the tests about it see a session expire.
_LASTING_MS = 30_000
_EXPIRING_MS = 2_000


@pytest.fixture
def proxy(zookeeper: ZooKeeperServer) -> Iterator[TcpProxy]:
    proxy = TcpProxy(zookeeper.port)
    yield proxy
    proxy.close()


@pytest.fixture
def connect(zookeeper: ZooKeeperServer) -> Iterator[Connect]:
    chroot = f"/client/{next(_chroots)}"
    opened: list[ZooKeeperClient] = []

    def open_one(port: int, session_timeout_ms: int) -> ZooKeeperClient:
        client = ZooKeeperClient(
            f"127.0.0.1:{port}{chroot}",
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=10_000,
        )
        opened.append(client)
        return client

    yield open_one
    for client in opened:
        client.close()


@pytest.fixture
def other(zookeeper: ZooKeeperServer, connect: Connect) -> ZooKeeperClient:
    """Connected directly, whatever happens to the proxy."""
    return connect(zookeeper.port, _LASTING_MS)


@pytest.fixture
def client(proxy: TcpProxy, connect: Connect) -> Iterator[ZooKeeperClient]:
    client = connect(proxy.port, _LASTING_MS)
    yield client
    proxy.mend()
    client.close()


@pytest.fixture
def expiring_client(proxy: TcpProxy, connect: Connect) -> Iterator[ZooKeeperClient]:
    client = connect(proxy.port, _EXPIRING_MS)
    yield client
    proxy.mend()
    client.close()


def test_nobody_listening_times_out_naming_the_connect_string() -> None:
    with pytest.raises(StoreTimeoutError, match=r"127\.0\.0\.1:1 within 300 ms"):
        ZooKeeperClient("127.0.0.1:1", session_timeout_ms=1_000, connection_timeout_ms=300)


def test_changes_during_a_lost_connection_are_reported_after_it(
    client: ZooKeeperClient, other: ZooKeeperClient, proxy: TcpProxy
) -> None:
    paths = ("/parent", "/changed", "/deleted", "/same")
    client.handle_requests([CreateRequest(path) for path in paths])
    handlers = {p: RecordingChangeHandler(p) for p in ("/changed", "/deleted", "/same", "/new")}
    for handler in handlers.values():
        client.register_znode_change_handler(handler)
    children = RecordingChildHandler("/parent")
    client.register_znode_child_change_handler(children)
    client.handle_requests([ExistsRequest(p) for p in handlers])
    client.handle_requests([GetChildrenRequest("/parent")])
    session_id = client.session_id

    proxy.cut()
    other.handle_requests(
        [
            SetDataRequest("/changed", b"x"),
            DeleteRequest("/deleted"),
            CreateRequest("/new"),
            CreateRequest("/parent/child"),
        ]
    )
    proxy.mend()

    assert handlers["/changed"].next() == "changed"
    assert handlers["/deleted"].next() == "deleted"
    assert handlers["/new"].next() == "created"
    assert children.next() == "children"
    assert handlers["/same"].pending == []
    assert client.session_id == session_id


def test_watches_outlive_a_lost_connection(
    client: ZooKeeperClient, other: ZooKeeperClient, proxy: TcpProxy
) -> None:
    client.handle_requests([CreateRequest("/a"), CreateRequest("/probe")])
    handler, probe = RecordingChangeHandler("/a"), RecordingChangeHandler("/probe")
    for each in (handler, probe):
        client.register_znode_change_handler(each)
        client.handle_requests([ExistsRequest(each.path)])

    proxy.cut()
    other.handle_requests([SetDataRequest("/probe", b"x")])
    proxy.mend()
    assert probe.next() == "changed"
    other.handle_requests([SetDataRequest("/a", b"y")])

    assert handler.next() == "changed"


def test_requests_without_connection_say_so_and_are_sent_again(
    client: ZooKeeperClient, proxy: TcpProxy, time: MockTime
) -> None:
    zk_client = KafkaZkClient(client, time)
    zk_client.znodes.create_recursive("/a/b", b"x")

    proxy.cut()
    wait_until(
        lambda: (
            client.handle_requests([GetDataRequest("/a/b")])[0].result_code
            is StoreCode.CONNECTION_LOSS
        )
    )
    proxy.mend()

    assert zk_client.znodes.get_data_and_version("/a/b") == (b"x", 0)


def test_expired_session_is_replaced_between_the_callbacks(
    expiring_client: ZooKeeperClient, other: ZooKeeperClient, proxy: TcpProxy
) -> None:
    state = RecordingStateHandler()
    expiring_client.register_state_change_handler(state)
    watcher = RecordingChangeHandler("/mine")
    other.register_znode_change_handler(watcher)
    expiring_client.handle_requests([CreateRequest("/mine", b"", CreateMode.EPHEMERAL)])
    assert other.handle_requests([ExistsRequest("/mine")])[0].ok
    expired_session_id = expiring_client.session_id

    proxy.cut()
    assert watcher.next() == "deleted"
    proxy.mend()

    assert [state.next(), state.next()] == ["before", "after"]
    expiring_client.wait_until_connected()
    assert expiring_client.session_id != expired_session_id
    assert expiring_client.handle_requests([CreateRequest("/again")])[0].ok
    assert state.pending == []


def test_waiting_for_a_connection_ends_with_the_session(
    expiring_client: ZooKeeperClient, other: ZooKeeperClient, proxy: TcpProxy
) -> None:
    class Waiting(RecordingStateHandler):
        def before_initializing_session(self) -> None:
            with pytest.raises(SessionExpiredError):
                expiring_client.wait_until_connected()
            code = expiring_client.handle_requests([ExistsRequest("/a")])[0].result_code
            self.note(code.name)

    state = Waiting()
    expiring_client.register_state_change_handler(state)
    gone = RecordingChangeHandler("/mine")
    other.register_znode_change_handler(gone)
    expiring_client.handle_requests([CreateRequest("/mine", b"", CreateMode.EPHEMERAL)])
    other.handle_requests([ExistsRequest("/mine")])

    proxy.cut()
    assert gone.next() == "deleted"
    proxy.mend()

    assert [state.next(), state.next()] == ["SESSION_EXPIRED", "after"]
