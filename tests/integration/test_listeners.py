"""Several listeners, the control plane, and the limits on connections."""

import socket
import time

import pytest

from kafkapy.common.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from tests.helpers import api
from tests.helpers.broker import Broker, Client, ConnectionClosed
from tests.helpers.records import records
from tests.helpers.waiting import wait_until
from tests.integration.conftest import MakeBroker

_MAP = "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROL:PLAINTEXT"


def _known_address(client: Client) -> tuple[str, int]:
    """Where Metadata says the broker is."""
    (broker,) = client.request(MetadataRequest(topics=[])).brokers
    (same,) = client.request(DescribeClusterRequest()).brokers
    assert (broker.host, broker.port) == (same.host, same.port)
    return broker.host, broker.port


# Listeners


def test_each_listener_tells_its_own_address(make_broker: MakeBroker) -> None:
    broker = make_broker(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
            "listener.security.protocol.map": _MAP,
        }
    )

    for listener in ("PLAINTEXT", "EXTERNAL"):
        with broker.client(listener) as client:
            assert _known_address(client) == broker.address(listener)
    assert broker.address("PLAINTEXT")[1] != broker.address("EXTERNAL")[1]


def test_an_advertised_listener_is_told_instead_of_the_bound_one(make_broker: MakeBroker) -> None:
    broker = make_broker(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
            "listener.security.protocol.map": _MAP,
            "advertised.listeners": "PLAINTEXT://127.0.0.1:0,EXTERNAL://broker.example:19092",
        }
    )

    with broker.client("EXTERNAL") as client:
        assert _known_address(client) == ("broker.example", 19092)
    with broker.client("PLAINTEXT") as client:
        assert _known_address(client) == broker.address("PLAINTEXT")


def test_what_is_produced_on_one_listener_is_fetched_on_the_other(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
            "listener.security.protocol.map": _MAP,
            "inter.broker.listener.name": "EXTERNAL",
        }
    )
    with broker.client("PLAINTEXT") as producer, broker.client("EXTERNAL") as consumer:
        topic = api.create_topic(producer)
        api.produced(producer, topic, records("a"))

        assert api.fetched_values(api.fetch(consumer, topic)) == [b"a"]


def test_the_controller_uses_the_control_plane(make_broker: MakeBroker) -> None:
    broker = make_broker(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROL://127.0.0.1:0",
            "listener.security.protocol.map": _MAP,
            "control.plane.listener.name": "CONTROL",
            "prometheus.port": "0",
        }
    )
    with broker.client() as client:
        topic = api.create_topic(client, partitions=3)
        api.produced(client, topic, records("a"), partition=2)
        api.delete_topic(client, topic)

    lines = broker.scrape().splitlines()
    connections = [line for line in lines if "_connection_count{" in line]
    assert any('listener="CONTROL"' in line and line.endswith(" 1.0") for line in connections)
    assert any(line.startswith("kafka_network_requestchannel_controlplane") for line in lines) or (
        any("controlplane" in line.lower() for line in lines)
    )


# Limits


def test_an_address_has_no_more_connections_than_it_may_have(make_broker: MakeBroker) -> None:
    # One connection is the controller's own.
    broker = make_broker({"max.connections.per.ip": "3"})
    clients = [broker.client() for _ in range(2)]
    try:
        for client in clients:
            assert _known_address(client)

        with broker.client() as refused:
            assert refused.is_closed()

        clients.pop().close()

        def accepted() -> bool:
            with broker.client() as another:
                try:
                    return bool(_known_address(another))
                except (ConnectionClosed, BrokenPipeError):
                    return False

        wait_until(accepted)
    finally:
        for client in clients:
            client.close()


def test_a_connection_without_requests_is_closed_in_the_end(make_broker: MakeBroker) -> None:
    broker = make_broker({"connections.max.idle.ms": "300"})

    with broker.client() as idle, broker.client() as busy:
        assert _known_address(idle)
        for _ in range(8):
            assert _known_address(busy)
            time.sleep(0.05)

        assert idle.is_closed(5)


def test_a_connection_that_waits_for_its_answer_is_not_idle(make_broker: MakeBroker) -> None:
    broker = make_broker({"connections.max.idle.ms": "200"})

    with broker.client() as client:
        topic = api.create_topic(client)

        data = api.fetch(client, topic, max_wait_ms=600)

    assert data.error_code == 0


def test_the_controller_finds_its_connection_again_when_it_was_idle(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker({"connections.max.idle.ms": "100"})
    time.sleep(0.4)

    with broker.client() as client:
        assert api.produced(client, api.create_topic(client), records("a")) == 0


@pytest.mark.parametrize("size", [1001, 2**31 - 1, -1, 0])
def test_a_request_of_an_impossible_size_closes_the_connection(
    make_broker: MakeBroker, size: int
) -> None:
    broker = make_broker({"socket.request.max.bytes": "1000"})
    with socket.create_connection(broker.address(), timeout=10) as connection:
        connection.sendall(size.to_bytes(4, signed=True))

        assert connection.recv(1) == b""


def test_garbage_closes_its_connection_and_no_other(broker: Broker, client: Client) -> None:
    for garbage in (b"\xff" * 8, b"\x00" * 8, b"GET / HTTP/1.1", bytes(range(256))):
        with broker.client() as bad:
            bad.send_frame(garbage)
            assert bad.is_closed()

    assert _known_address(client) == broker.address()


def test_a_client_that_sends_byte_by_byte_is_understood(broker: Broker, topic: str) -> None:
    header = bytes.fromhex("0003000c0000002a000174" + "00")  # Metadata v12, id 42, client "t"
    frame = header + MetadataRequest(topics=[]).encode(12)
    with socket.create_connection(broker.address(), timeout=10) as connection:
        for byte in len(frame).to_bytes(4) + frame:
            connection.sendall(bytes([byte]))

        size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL))
        answer = connection.recv(size, socket.MSG_WAITALL)
    assert answer[:4] == (42).to_bytes(4)


def test_many_connections_are_served_at_once(broker: Broker) -> None:
    clients = [broker.client() for _ in range(100)]
    try:
        for client in clients:
            client.send(MetadataRequest(topics=[]))
        for client in clients:
            assert client.receive().brokers
    finally:
        for client in clients:
            client.close()
