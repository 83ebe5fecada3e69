import contextlib
import socket
import urllib.request
from collections.abc import Iterator
from urllib.error import HTTPError

import pytest

from kafkapy.common.errors import KafkaError
from kafkapy.common.metrics.naming import MetricsNaming
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Histogram, Meter
from kafkapy.server.metrics_server import MetricsServer
from kafkapy.utils.time import SystemTime, Time
from tests.helpers.mock_time import MockTime
from tests.helpers.waiting import wait_until

BYTES_IN = Meter("kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec", "In.", ("topic",))
TOTAL_TIME = Histogram("kafka.network:type=RequestMetrics,name=TotalTimeMs", "Time.", ("request",))


@pytest.fixture
def registry() -> MetricsRegistry:
    return MetricsRegistry()


@pytest.fixture
def server(registry: MetricsRegistry) -> Iterator[MetricsServer]:
    server = _server(registry)
    server.start()
    yield server
    server.close()


def _server(registry: MetricsRegistry, port: int = 0, time: Time | None = None) -> MetricsServer:
    return MetricsServer(
        registry, MetricsNaming.JMX_EXPORTER, time or SystemTime(), host="127.0.0.1", port=port
    )


def get(server: MetricsServer, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as response:
        return str(response.read().decode())


def test_metrics_are_served_in_prometheus_text(
    server: MetricsServer, registry: MetricsRegistry
) -> None:
    registry.meter(BYTES_IN, topic="orders").mark(12)
    registry.histogram(TOTAL_TIME, request="Produce").update(3)

    text = get(server, "/metrics")

    assert 'kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 12.0' in text
    assert 'kafka_network_requestmetrics_totaltimems{quantile="0.99",request="Produce"} 3.0' in text
    assert 'kafka_network_requestmetrics_totaltimems_count{request="Produce"} 1.0' in text


def test_another_path_is_not_found(server: MetricsServer) -> None:
    with pytest.raises(HTTPError) as error:
        get(server, "/secrets")

    assert error.value.code == 404
    error.value.close()


def test_garbage_does_not_end_the_server(server: MetricsServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"\x00\xff\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 405")

    assert "process_open_fds" in get(server, "/metrics")


def test_a_taken_port_is_named(server: MetricsServer, registry: MetricsRegistry) -> None:
    with pytest.raises(KafkaError, match=f"prometheus.port={server.port}"):
        _server(registry, server.port)


def test_slow_clients_do_not_keep_out_the_next_one(server: MetricsServer) -> None:
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(7)]
    try:
        for connection in slow:
            connection.sendall(b"GET /metr")

        assert "process_open_fds" in get(server, "/metrics")

        for connection in slow:
            connection.sendall(b"ics HTTP/1.1\r\n\r\n")
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
    finally:
        for connection in slow:
            connection.close()


def test_client_that_trickles_past_its_time_is_cut_off(
    registry: MetricsRegistry, time: MockTime
) -> None:
    server = _server(registry, time=time)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as trickling:
            trickling.sendall(b"G")
            wait_until(lambda: server.scrapes_in_progress == 1)
            time.sleep(11_000)
            trickling.sendall(b"E")

            # A reset if the server had hung up before that byte came.
            with contextlib.suppress(ConnectionResetError):
                assert trickling.recv(100) == b""
            wait_until(lambda: server.scrapes_in_progress == 0)
    finally:
        server.close()


def test_close_does_not_wait_for_a_slow_client(registry: MetricsRegistry) -> None:
    server = _server(registry)
    server.start()
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    wait_until(lambda: server.scrapes_in_progress == 8)

    server.close()

    assert server.scrapes_in_progress == 0
    for connection in slow:
        connection.close()
