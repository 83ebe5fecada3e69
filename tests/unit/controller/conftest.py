from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.utils.time import SystemTime
from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from tests.unit.controller.cluster import Cluster


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    store = EmbeddedStore(tmp_path / "metadata.sqlite", SystemTime())
    yield store
    store.close()


@pytest.fixture
def zk_client(store: EmbeddedStore) -> KafkaZkClient:
    client = KafkaZkClient(store, SystemTime())
    client.create_top_level_paths()
    return client


@pytest.fixture
def cluster(store: EmbeddedStore, zk_client: KafkaZkClient) -> Iterator[Cluster]:
    cluster = Cluster(store, zk_client)
    yield cluster
    cluster.close()
