"""A broker in this process, and a blocking client that speaks any version of any API."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafkapy.common.protocol.schema import Message
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.server.kafka_server import KafkaServer, open_metadata_store
from kafkapy.testing.wire_client import ConnectionClosed, WireClient
from kafkapy.utils.time import SystemTime, Time
from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import MetadataStore

BROKER_ID = 0
PLAINTEXT = "PLAINTEXT"

__all__ = ["BROKER_ID", "PLAINTEXT", "Broker", "Client", "ConnectionClosed", "running_broker"]


class Broker:
    """One broker on free ports over one log directory; may be stopped and started again."""

    def __init__(self, log_dir: Path, properties: Mapping[str, str] | None = None) -> None:
        self.log_dir = log_dir
        self.properties = {
            "broker.id": str(BROKER_ID),
            "listeners": f"{PLAINTEXT}://127.0.0.1:0",
            "log.dirs": str(log_dir),
            "prometheus.port": "-1",
            "offsets.topic.num.partitions": "2",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "2",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **(properties or {}),
        }
        self.server = self._new_server()

    def _new_server(self) -> KafkaServer:
        return KafkaServer(KafkaConfig(self.properties), SystemTime(), store=self._open_store)

    def _open_store(self, config: KafkaConfig, time: Time) -> MetadataStore:
        self._store = open_metadata_store(config, time)
        return self._store

    def new_session(self) -> MetadataStore:
        """Another client of this broker's metadata."""
        assert isinstance(self._store, EmbeddedStore)
        return self._store.new_session()

    @property
    def epoch(self) -> int:
        """The epoch that the broker got when it registered."""
        brokers = KafkaZkClient(self._store, SystemTime()).get_all_broker_and_epochs_in_cluster()
        return next(epoch for broker, epoch in brokers.items() if broker.id == BROKER_ID)

    def start(self) -> None:
        self.server = self._new_server()
        try:
            self.server.startup()
        except BaseException:
            self.server.shutdown()
            raise

    def stop(self) -> None:
        self.server.shutdown()

    def restart(self, properties: Mapping[str, str] | None = None) -> None:
        self.stop()
        self.properties.update(properties or {})
        self.start()

    def address(self, listener: str = PLAINTEXT) -> tuple[str, int]:
        end_point = next(e for e in self.server.bound_listeners if e.listener_name == listener)
        return end_point.host or "127.0.0.1", end_point.port

    def client(self, listener: str = PLAINTEXT, *, client_id: str | None = "test") -> "Client":
        return Client(self.address(listener), client_id=client_id)

    def scrape(self) -> str:
        """The text at /metrics."""
        assert self.server.metrics_address is not None
        host, _, port = self.server.metrics_address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK"), head
        return body.decode()


@contextmanager
def running_broker(log_dir: Path, properties: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """A started broker that is stopped at the end, after which none of its threads is left."""
    before = set(threading.enumerate())
    broker = Broker(log_dir, properties)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
    left = [t for t in threading.enumerate() if t not in before and t.is_alive()]
    assert not left, f"threads outlive the broker: {left}"


class Client(WireClient):
    """One connection; requests may be pipelined. Not thread-safe."""

    def __init__(
        self, address: tuple[str, int], *, client_id: str | None = "test", timeout: float = 20
    ) -> None:
        super().__init__(address, client_id=client_id, timeout=timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, message: Message, version: int | None = None) -> Any:
        """Sends and waits for the response; the highest version unless told."""
        self.send(message, version)
        return self.receive()

    def has_response(self, timeout: float) -> bool:
        """Whether something arrives within that many seconds (the end of the connection does)."""
        self._socket.settimeout(timeout)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True
        finally:
            self._socket.settimeout(20)
        return True

    def is_closed(self, timeout: float = 10) -> bool:
        """Whether the broker closes the connection, without another response, within that time."""
        deadline = time.monotonic() + timeout
        self._socket.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
