"""Stores to run the same tests against: embedded always, ZooKeeper where one can be started."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from kafkapy.zk.embedded_store import EMBEDDED_STORE_FILE, EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import MetadataStore
from kafkapy.zk.zookeeper_client import ZooKeeperClient
from tests.helpers.mock_time import MockTime
from tests.helpers.zookeeper_server import ZooKeeperServer, missing_zookeeper

OpenSession = Callable[[], MetadataStore]

_chroots = count()


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    reason = missing_zookeeper()
    if reason is not None:
        pytest.skip(f"no ZooKeeper: {reason}")
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    yield server
    server.stop()


# That ZooKeeper is left out is said once, by test_zookeeper_client.py, not by every test here.
@pytest.fixture(params=["embedded"] if missing_zookeeper() else ["embedded", "zookeeper"])
def open_session(
    request: pytest.FixtureRequest, tmp_path: Path, time: MockTime
) -> Iterator[OpenSession]:
    """Opens sessions with one tree, empty at first; what is still open is closed at the end."""
    opened: list[MetadataStore] = []

    def open_embedded() -> MetadataStore:
        first = opened[0] if opened else None
        if isinstance(first, EmbeddedStore):
            return first.new_session()
        return EmbeddedStore(tmp_path / EMBEDDED_STORE_FILE, time)

    def open_zookeeper() -> MetadataStore:
        server: ZooKeeperServer = request.getfixturevalue("zookeeper")
        return ZooKeeperClient(f"127.0.0.1:{server.port}{chroot}", session_timeout_ms=30_000)

    chroot = f"/test/{next(_chroots)}"
    opener = open_embedded if request.param == "embedded" else open_zookeeper

    def open_one() -> MetadataStore:
        store = opener()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_session: OpenSession) -> MetadataStore:
    return open_session()


@pytest.fixture
def embedded(tmp_path: Path, time: MockTime) -> Iterator[EmbeddedStore]:
    store = EmbeddedStore(tmp_path / EMBEDDED_STORE_FILE, time)
    yield store
    store.close()


@pytest.fixture
def zk_client(embedded: EmbeddedStore, time: MockTime) -> KafkaZkClient:
    client = KafkaZkClient(embedded, time)
    client.create_top_level_paths()
    return client
