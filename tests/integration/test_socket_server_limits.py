"""Bounds: connections, queued requests, request memory, idle time."""

import struct
import threading

import pytest

from kafkapy.common.network.io_platform import NATIVE, PORTABLE, IoPlatform
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.network.socket_server import MEMORY_POOL_AVAILABLE
from kafkapy.network.socket_server_config import SocketServerConfig
from tests.helpers.socket_server import Client, Gate, TestServer, answer
from tests.helpers.waiting import wait_until

PLATFORMS = pytest.mark.parametrize("platform", [NATIVE, PORTABLE], ids=["native", "portable"])


def ask(client: Client, correlation_id: int) -> None:
    client.send(MetadataRequest(topics=None), 1, correlation_id=correlation_id)


def test_connections_of_one_address_are_limited_exactly() -> None:
    config = SocketServerConfig(max_connections_per_ip=3)
    with TestServer(config) as server:
        clients = [server.connect() for _ in range(3)]
        assert [client.metadata(1) for client in clients] == [1, 1, 1]

        for _ in range(5):
            assert server.connect().is_closed_by_server()
        clients.pop().close()
        wait_until(lambda: server.socket_server.connection_count == 2)

        assert server.connect().metadata(2) == 2
        assert server.connect().is_closed_by_server()
        assert [client.metadata(3) for client in clients] == [3, 3]


def test_limit_of_one_address_does_not_touch_another() -> None:
    config = SocketServerConfig(
        max_connections_per_ip=1, max_connections_per_ip_overrides=("127.0.0.3:2",)
    )
    with TestServer(config) as server:
        for source, allowed in (("127.0.0.1", 1), ("127.0.0.2", 1), ("127.0.0.3", 2)):
            for _ in range(allowed):
                assert server.connect(source=source).metadata(1) == 1
            assert server.connect(source=source).is_closed_by_server()


def test_connection_over_the_brokers_limit_waits_for_a_slot() -> None:
    config = SocketServerConfig(max_connections=2)
    with TestServer(config) as server:
        first, second, third = (server.connect() for _ in range(3))
        assert [first.metadata(1), second.metadata(2)] == [1, 2]
        ask(third, 3)

        first.close()

        assert third.receive_metadata() == 3
        assert server.socket_server.connection_count == 2


def test_limit_of_one_listener_leaves_the_others_alone() -> None:
    with TestServer(
        listeners=("INTERNAL", "CLIENTS"), listener_max_connections={"CLIENTS": 1}
    ) as server:
        first, waiting = server.connect("CLIENTS"), server.connect("CLIENTS")
        assert first.metadata(1) == 1
        ask(waiting, 2)

        for correlation_id in range(3):
            assert server.connect("INTERNAL").metadata(correlation_id) == correlation_id
        first.close()

        assert waiting.receive_metadata() == 2


def test_inter_broker_listener_takes_the_place_of_the_least_recently_used() -> None:
    config = SocketServerConfig(max_connections=2, connections_max_idle_ms=-1)
    with TestServer(config, listeners=("INTERNAL", "CLIENTS")) as server:
        oldest = server.connect("CLIENTS")
        assert oldest.metadata(1) == 1
        newest = server.connect("CLIENTS")
        assert newest.metadata(1) == 1

        assert server.connect("INTERNAL").metadata(2) == 2

        assert oldest.is_closed_by_server()
        assert newest.metadata(3) == 3


@PLATFORMS
def test_full_request_queue_stops_reading_but_loses_nothing(platform: IoPlatform) -> None:
    gate = Gate()
    config = SocketServerConfig(queued_max_requests=4)
    with TestServer(config, handler=gate, num_handlers=2, platform=platform) as server:
        clients = [server.connect() for _ in range(30)]
        for number, client in enumerate(clients):
            ask(client, number)
            ask(client, number + 1000)
        channel = server.socket_server.data_plane_request_channel
        wait_until(lambda: gate.waiting == 2 and channel.queue_size == 4)

        gate.open()

        for number, client in enumerate(clients):
            assert [client.receive_metadata(), client.receive_metadata()] == [
                number,
                number + 1000,
            ]


def test_answers_are_sent_while_the_request_queue_is_full() -> None:
    gate = Gate()
    held: list[tuple[RequestChannel, Request]] = []

    def handle(channel: RequestChannel, request: Request) -> None:
        if request.header.correlation_id == 0:
            held.append((channel, request))
        else:
            gate(channel, request)

    config = SocketServerConfig(queued_max_requests=1)
    with TestServer(config, handler=handle, num_handlers=1) as server:
        delayed = server.connect()
        ask(delayed, 0)
        wait_until(lambda: len(held) == 1)
        clients = [server.connect() for _ in range(5)]
        for number, client in enumerate(clients):
            ask(client, number + 1)
        channel = server.socket_server.data_plane_request_channel
        wait_until(lambda: gate.waiting == 1 and channel.queue_size == 1)

        channel, request = held[0]
        channel.send_no_op_response(request)
        ask(delayed, 9)
        gate.open()

        assert delayed.receive_metadata() == 9
        assert [client.receive_metadata() for client in clients] == [1, 2, 3, 4, 5]


def test_request_memory_is_bounded_and_nothing_is_lost() -> None:
    lock = threading.Lock()
    handled = []

    def handle(channel: RequestChannel, request: Request) -> None:
        produce = request.body_as(ProduceRequest)
        with lock:
            handled.append(len(produce.topic_data[0].partition_data[0].records or b""))
        channel.send_no_op_response(request)

    data = ProduceRequest.PartitionProduceData(index=0, records=bytes(300_000))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    produce = ProduceRequest(acks=0, timeout_ms=1, topic_data=[topic])
    config = SocketServerConfig(queued_max_request_bytes=500_000)
    with TestServer(config, handler=handle) as server:
        clients = [server.connect() for _ in range(10)]

        def send(client: Client) -> None:
            for _ in range(5):
                client.send(produce, 7)

        threads = [threading.Thread(target=send, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        wait_until(lambda: len(handled) == 50)
        wait_until(lambda: server.metric(MEMORY_POOL_AVAILABLE) == 500_000)
    assert handled == [300_000] * 50


def test_memory_of_requests_that_never_complete_is_given_back() -> None:
    config = SocketServerConfig(queued_max_request_bytes=1000)
    with TestServer(config) as server:
        hog = server.connect()
        hog.sock.sendall(struct.pack(">i", 5000) + b"half")
        wait_until(lambda: server.metric(MEMORY_POOL_AVAILABLE) < 0)
        waiting = server.connect()
        ask(waiting, 4)

        hog.close()

        assert waiting.receive_metadata() == 4


def test_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    gate = Gate()
    config = SocketServerConfig(connections_max_idle_ms=100)
    with TestServer(config, handler=gate) as server:
        busy, idle, slow = server.connect(), server.connect(), server.connect()
        ask(busy, 1)
        slow.sock.sendall(struct.pack(">i", 1000) + b"never the rest")

        assert idle.is_closed_by_server()
        assert slow.is_closed_by_server()
        gate.open()
        assert busy.receive_metadata() == 1


def test_connections_left_with_requests_that_wait_for_ever_are_closed() -> None:
    waiting: list[Request] = []
    config = SocketServerConfig(connections_max_idle_ms=100)
    with TestServer(
        config, handler=lambda _, request: waiting.append(request), drain_timeout_ms=0
    ) as server:
        stays = server.connect()
        ask(stays, 1)
        wait_until(lambda: len(waiting) == 1)
        for _ in range(20):
            client = server.connect()
            ask(client, 1)
            ask(client, 2)
            client.close()
        wait_until(lambda: len(waiting) == 21)

        wait_until(lambda: server.socket_server.connection_count == 1)

        answer(server.socket_server.data_plane_request_channel, waiting[0])
        assert stays.receive_metadata() == 1


def test_many_connections_come_and_go() -> None:
    with TestServer() as server:
        for _ in range(3):
            clients = [server.connect() for _ in range(150)]
            for number, client in enumerate(clients):
                ask(client, number)
            assert [client.receive_metadata() for client in clients] == list(range(150))
            for client in clients:
                client.close()
            wait_until(lambda: server.socket_server.connection_count == 0)
