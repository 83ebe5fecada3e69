import os
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkapy.common.errors import KafkaError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.common.network.io_platform import (
    NATIVE,
    PORTABLE,
    IoPlatform,
    SelectorsPoller,
)
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.network.processor import CONNECTION_COUNT
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.network.request_metrics import REQUESTS_PER_SEC, TOTAL_TIME_MS
from kafkapy.network.socket_server import (
    ACCEPTOR_BLOCKED_PERCENT,
    NETWORK_PROCESSOR_AVG_IDLE_PERCENT,
    SocketServer,
)
from kafkapy.network.socket_server_config import SocketServerConfig
from kafkapy.utils.time import SystemTime
from tests.helpers.socket_server import FixedApiVersions, Gate, TestServer, answer
from tests.helpers.waiting import wait_until

PLATFORMS = pytest.mark.parametrize("platform", [NATIVE, PORTABLE], ids=["native", "portable"])


@PLATFORMS
@pytest.mark.parametrize("processors", [1, 3])
def test_every_connection_is_answered(platform: IoPlatform, processors: int) -> None:
    config = SocketServerConfig(num_network_threads=processors)
    with TestServer(config, platform=platform) as server:
        clients = [server.connect() for _ in range(10)]

        for correlation_id in range(5):
            for number, client in enumerate(clients):
                client.send(
                    MetadataRequest(topics=None), 1, correlation_id=100 * number + correlation_id
                )
            answers = [client.receive_metadata() for client in clients]
            assert answers == [100 * number + correlation_id for number in range(10)]


@PLATFORMS
def test_pipelined_requests_are_answered_in_order(platform: IoPlatform) -> None:
    with TestServer(platform=platform, num_handlers=4) as server:
        client = server.connect()

        for correlation_id in range(200):
            client.send(MetadataRequest(topics=None), 12, correlation_id=correlation_id)

        assert [client.receive_metadata(12) for _ in range(200)] == list(range(200))


def test_connection_has_one_request_in_flight() -> None:
    gate = Gate()
    with TestServer(handler=gate, num_handlers=4) as server:
        client, other = server.connect(), server.connect()
        for correlation_id in range(3):
            client.send(MetadataRequest(topics=None), 1, correlation_id=correlation_id)
        other.send(MetadataRequest(topics=None), 1, correlation_id=9)

        wait_until(lambda: gate.waiting == 2)
        gate.open()

        assert [client.receive_metadata() for _ in range(3)] == [0, 1, 2]
        assert other.receive_metadata() == 9


@pytest.mark.parametrize("size", [10_000, 1_000_000, 20_000_000])
def test_large_request_arrives_whole(size: int) -> None:
    bodies: list[bytes] = []

    def keep(channel: RequestChannel, request: Request) -> None:
        produce = request.body_as(ProduceRequest)
        records = produce.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        bodies.append(bytes(records))
        channel.send_no_op_response(request)

    sent = os.urandom(1000) * (size // 1000)
    data = ProduceRequest.PartitionProduceData(index=0, records=sent)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    with TestServer(handler=keep) as server:
        client = server.connect()

        for _ in range(2):
            client.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[topic]), 7)

        wait_until(lambda: len(bodies) == 2)
    assert bodies == [sent, sent]


@dataclass
class FileSlice:
    fd: int
    position: int
    size_in_bytes: int

    def fileno(self) -> int:
        return self.fd


@PLATFORMS
def test_file_slices_are_sent_from_the_file(platform: IoPlatform, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    path = tmp_path / "segment.log"
    path.write_bytes(content)
    fd = os.open(path, os.O_RDONLY)

    def respond(channel: RequestChannel, request: Request) -> None:
        data = FetchResponse.PartitionData(
            partition_index=0, high_watermark=1, records=FileSlice(fd, 5, 2_999_990)
        )
        topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[data, data])
        channel.send_response(request, FetchResponse(responses=[topic]))

    with TestServer(handler=respond, platform=platform) as server:
        client = server.connect()
        client.send(FetchRequest(), 4)
        response = FetchResponse.decode(client.receive_frame()[4:], 4)
    os.close(fd)

    for data in response.responses[0].partitions:
        assert bytes(data.records) == content[5:2_999_995]


def test_file_cut_short_while_it_is_sent_closes_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "segment.log"
    path.write_bytes(bytes(100))
    fd = os.open(path, os.O_RDWR)

    def respond(channel: RequestChannel, request: Request) -> None:
        data = FetchResponse.PartitionData(
            partition_index=0, high_watermark=1, records=FileSlice(fd, 0, 5000)
        )
        topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[data])
        channel.send_response(request, FetchResponse(responses=[topic]))

    with TestServer(handler=respond) as server:
        client = server.connect()
        client.send(FetchRequest(), 4)

        with pytest.raises(ConnectionError):
            client.receive_frame()
        assert server.threads_alive
    os.close(fd)


def test_request_without_answer_is_followed_by_the_next() -> None:
    with TestServer() as server:
        client = server.connect()

        client.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), 7)

        assert client.metadata(5) == 5


def test_failed_request_closes_its_connection_only() -> None:
    def fail_for_api_versions(channel: RequestChannel, request: Request) -> None:
        if request.header.api_key is ApiKeys.API_VERSIONS:
            raise RuntimeError("on purpose")
        answer(channel, request)

    with TestServer(handler=fail_for_api_versions) as server:
        failing, other = server.connect(), server.connect()

        failing.send(ApiVersionsRequest(), 0)

        assert failing.is_closed_by_server()
        assert other.metadata(3) == 3
        assert server.threads_alive


def test_context_tells_who_asks() -> None:
    requests: list[Request] = []

    def keep(channel: RequestChannel, request: Request) -> None:
        requests.append(request)
        answer(channel, request)

    with TestServer(handler=keep) as server:
        client = server.connect()
        client.send(
            ApiVersionsRequest(client_software_name="lib", client_software_version="1.2"), 3
        )
        client.receive_frame()
        client.metadata()
        local, remote = client.sock.getpeername(), client.sock.getsockname()

    context = requests[1].context
    assert context.client_address == "127.0.0.1"
    assert context.listener_name == "PLAINTEXT"
    assert context.security_protocol is SecurityProtocol.PLAINTEXT
    assert str(context.principal) == "User:ANONYMOUS"
    assert context.client_information == ("lib", "1.2")
    assert context.connection_id.startswith(f"127.0.0.1:{local[1]}-127.0.0.1:{remote[1]}-0-")
    assert context.header.client_id == "test"


def test_throttled_connection_is_answered_then_muted() -> None:
    throttled: list[tuple[RequestChannel, Request]] = []

    def throttle_first(channel: RequestChannel, request: Request) -> None:
        if not throttled:
            throttled.append((channel, request))
            channel.start_throttling(request)
        answer(channel, request)

    with TestServer(handler=throttle_first) as server:
        client, other = server.connect(), server.connect()
        assert client.metadata(1) == 1
        client.send(MetadataRequest(topics=None), 1, correlation_id=2)
        for correlation_id in range(10):
            other.metadata(correlation_id)
        client.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.sock.recv(1)

        client.sock.settimeout(30)
        channel, request = throttled[0]
        channel.end_throttling(request)

        assert client.receive_metadata() == 2


def test_control_plane_is_served_while_the_data_plane_is_stuck() -> None:
    gate = Gate()

    def block_data_plane(channel: RequestChannel, request: Request) -> None:
        if request.context.from_privileged_listener:
            answer(channel, request)
        else:
            gate(channel, request)

    with TestServer(
        handler=block_data_plane,
        listeners=("PLAINTEXT", "CONTROLLER"),
        control_plane_listener_name="CONTROLLER",
        num_handlers=1,
    ) as server:
        client, controller = server.connect(), server.connect("CONTROLLER")
        client.send(MetadataRequest(topics=None), 1, correlation_id=8)
        wait_until(lambda: gate.waiting == 1)

        assert controller.metadata(7) == 7
        gate.open()
        assert client.receive_metadata() == 8


def test_taken_port_is_one_clear_error_and_leaves_nothing_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = [
            EndPoint("FIRST", SecurityProtocol.PLAINTEXT, "127.0.0.1", 0),
            EndPoint("CLIENTS", SecurityProtocol.PLAINTEXT, "127.0.0.1", port),
        ]

        with pytest.raises(
            KafkaError, match=rf"CLIENTS://127\.0\.0\.1:{port} \(listeners\): Address already"
        ):
            _new_server(listeners)


def test_unknown_host_is_one_clear_error() -> None:
    end_point = EndPoint("CLIENTS", SecurityProtocol.PLAINTEXT, "no.such.host.invalid", 0)

    with pytest.raises(KafkaError, match="CLIENTS"):
        _new_server([end_point])


def test_security_protocol_that_is_not_supported_is_refused() -> None:
    end_point = EndPoint("CLIENTS", SecurityProtocol.SSL, "127.0.0.1", 0)

    with pytest.raises(KafkaError, match="SSL"):
        _new_server([end_point])


@pytest.mark.parametrize("host", ["", "localhost", "0.0.0.0"])
def test_listener_is_reached_by_ipv4(host: str) -> None:
    server = _new_server([EndPoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, host, 0)])

    with socket.create_connection(("127.0.0.1", server.bound_port("PLAINTEXT")), timeout=30):
        server.shutdown()


def test_port_of_an_unknown_listener_is_an_error() -> None:
    with TestServer() as server, pytest.raises(KafkaError, match="OTHER"):
        server.socket_server.bound_port("OTHER")


def test_shutdown_finishes_what_is_in_flight() -> None:
    gate = Gate()
    server = TestServer(handler=gate)
    with server:
        client = server.connect()
        client.send(MetadataRequest(topics=None), 1, correlation_id=5)
        wait_until(lambda: gate.waiting == 1)

        stopping = threading.Thread(target=server.socket_server.stop_processing_requests)
        stopping.start()
        wait_until(lambda: _refuses_connections(server))
        gate.open()

        assert client.receive_metadata() == 5
        stopping.join(30)
        assert client.is_closed_by_server()


def test_a_request_about_to_be_read_when_shutdown_begins_is_answered() -> None:
    armed, held, released = threading.Event(), threading.Event(), threading.Event()
    platform = IoPlatform(
        lambda: _HoldingPoller(armed, held, released), PORTABLE.new_waker, PORTABLE.send_file
    )
    with TestServer(platform=platform) as server:
        client = server.connect()
        assert client.metadata(1) == 1
        armed.set()
        client.send(MetadataRequest(topics=None), 1, correlation_id=2)
        assert held.wait(30)

        stopping = threading.Thread(target=server.socket_server.stop_processing_requests)
        stopping.start()
        wait_until(lambda: _refuses_connections(server))
        stopping.join(0.2)  # time enough to see no request in flight
        released.set()

        assert client.receive_metadata() == 2
        stopping.join(30)
        assert client.is_closed_by_server()


def test_shutdown_gives_up_on_a_request_that_takes_too_long() -> None:
    gate = Gate()
    with TestServer(handler=gate, drain_timeout_ms=50) as server:
        client = server.connect()
        client.send(MetadataRequest(topics=None), 1)
        wait_until(lambda: gate.waiting == 1)

        server.socket_server.stop_processing_requests()

        assert client.is_closed_by_server()
        gate.open()


def test_a_listener_held_back_serves_whoever_has_come_meanwhile() -> None:
    server = TestServer(listeners=("PLAINTEXT", "LATER"))
    server.socket_server.enable_request_processing(hold={"LATER"})
    try:
        assert server.connect().metadata(7) == 7
        early = server.connect("LATER")
        early.send(MetadataRequest(topics=None), 1, correlation_id=8)
        assert server.socket_server.connection_count == 1

        server.socket_server.enable_request_processing()

        assert early.receive_metadata() == 8
    finally:
        server.__exit__()


def test_server_that_was_never_enabled_shuts_down() -> None:
    server = TestServer()

    server.stop()
    server.stop()


def test_threads_and_descriptors_are_gone_after_shutdown() -> None:
    before = _descriptors()

    with TestServer() as server:
        for _ in range(5):
            server.connect().metadata()
        assert _descriptors() > before

    assert _descriptors() == before
    assert not any("data-plane" in thread.name for thread in threading.enumerate())
    assert not [s for s in server.metrics.samples() if isinstance(s.spec, Gauge)]


def test_requests_and_connections_are_measured() -> None:
    with TestServer() as server:
        client = server.connect()
        for _ in range(3):
            client.metadata()
        # An answer is counted after it is sent; the next request comes after that.
        client.send(ApiVersionsRequest(), 0)
        client.receive_frame()

        wait_until(lambda: server.metric(REQUESTS_PER_SEC, request="Metadata", version=1) == 3)
        assert server.metric(TOTAL_TIME_MS, request="Metadata").count == 3
        labels = {"listener": "PLAINTEXT", "networkProcessor": 0}
        assert server.metric(CONNECTION_COUNT, **labels) == 1
        assert 0 <= server.metric(NETWORK_PROCESSOR_AVG_IDLE_PERCENT) <= 1
        assert 0 <= server.metric(ACCEPTOR_BLOCKED_PERCENT, listener="PLAINTEXT") <= 1


def _new_server(listeners: list[EndPoint]) -> SocketServer:
    return SocketServer(
        SocketServerConfig(),
        MetricsRegistry(),
        SystemTime(),
        listeners=listeners,
        api_versions=FixedApiVersions(),
    )


class _HoldingPoller(SelectorsPoller):
    """Once armed, keeps back the first word of something to be read from a connection."""

    def __init__(
        self, armed: threading.Event, held: threading.Event, released: threading.Event
    ) -> None:
        super().__init__()
        self._armed = armed
        self._held = held
        self._released = released
        self._wakers_fd: int | None = None

    def register(self, fd: int, events: int) -> None:
        if self._wakers_fd is None:
            self._wakers_fd = fd
        super().register(fd, events)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        ready = super().poll(timeout)
        if self._armed.is_set() and any(fd != self._wakers_fd for fd, _ in ready):
            self._armed.clear()
            self._held.set()
            assert self._released.wait(60)
        return ready


def _refuses_connections(server: TestServer) -> bool:
    try:
        server.connect().close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # the listening socket was closed while this waited in its backlog
    return False


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
