"""Whatever a client sends: its connection is closed with one line, everybody else is served."""

import random
import struct
import threading
from collections.abc import Iterator

import pytest

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.network.socket_server_config import SocketServerConfig
from tests.helpers.socket_server import SERVED, Client, TestServer
from tests.helpers.waiting import wait_until

MAX_BYTES = 1_000_000


@pytest.fixture
def server() -> Iterator[TestServer]:
    config = SocketServerConfig(socket_request_max_bytes=MAX_BYTES)
    with TestServer(config) as server:
        yield server


@pytest.fixture
def canary(server: TestServer) -> Iterator[Client]:
    """A connection that must not notice anything."""
    client = server.connect()
    assert client.metadata(1) == 1
    yield client
    assert client.metadata(2) == 2
    client.close()
    assert server.threads_alive


def header(api_key: int, version: int, client_id_length: int = -1) -> bytes:
    return struct.pack(">hhih", api_key, version, 1, client_id_length)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name.startswith("kafkapy.network")]


@pytest.mark.parametrize("size", [-1, -(2**31), MAX_BYTES + 1, 2**31 - 1, 0x16030100, 0x47455420])
def test_frame_of_a_wrong_size_closes_the_connection(
    server: TestServer, canary: Client, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    client = server.connect()

    client.sock.sendall(struct.pack(">i", size) + b"whatever")

    assert client.is_closed_by_server()
    wait_until(lambda: len(warnings(caplog)) == 1)
    assert str(size) in warnings(caplog)[0]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\0",
        b"\0\3\0\1\0",
        header(ApiKeys.METADATA, 1, 30_000),
        header(ApiKeys.METADATA, 1) + struct.pack(">i", 2**31 - 1),
        header(ApiKeys.METADATA, 1) + struct.pack(">ih", 1, -5),
        header(ApiKeys.METADATA, 12) + b"\0\xff\xff\xff\xff\x7f",
        header(ApiKeys.PRODUCE, 7) + struct.pack(">hhiiihii", -1, 1, 1, 1, 2**30, 5, 1, 1),
        header(9999, 0) + b"rest",
        header(-1, 0) + b"rest",
        header(ApiKeys.METADATA, 99) + b"rest",
        header(ApiKeys.METADATA, -1) + b"rest",
        header(ApiKeys.JOIN_GROUP, 0) + b"not served here",
        b"\xff" * 1000,
    ],
)
def test_frame_that_is_no_request_closes_the_connection(
    server: TestServer, canary: Client, caplog: pytest.LogCaptureFixture, payload: bytes
) -> None:
    client = server.connect()

    client.send_frame(payload)

    assert client.is_closed_by_server()
    wait_until(lambda: len(warnings(caplog)) == 1)


@pytest.mark.parametrize("version", [5, 6, 50, 32767, -1])
def test_api_versions_of_an_unknown_version_is_answered_in_version_zero(
    server: TestServer, canary: Client, version: int
) -> None:
    client = server.connect()

    client.send_frame(header(ApiKeys.API_VERSIONS, version) + b"\0anything")

    frame = client.receive_frame()
    assert frame[:4] == struct.pack(">i", 1)
    assert ApiVersionsResponse.decode(frame[4:], 0).error_code == 35
    assert client.metadata(4) == 4


def test_every_cut_of_a_request_closes_the_connection(server: TestServer, canary: Client) -> None:
    topics = [MetadataRequest.MetadataRequestTopic(name="topic") for _ in range(2)]
    start = RequestHeader(
        api_key=ApiKeys.METADATA, api_version=12, correlation_id=1, client_id="c"
    ).to_bytes()
    whole = start + MetadataRequest(topics=topics).encode(12)

    for length in range(len(whole)):
        client = server.connect()
        client.send_frame(whole[:length])
        assert client.is_closed_by_server(), length
        client.close()


def test_mutated_requests_leave_the_server_alive(server: TestServer, canary: Client) -> None:
    rng = random.Random(7)
    topics = [MetadataRequest.MetadataRequestTopic(name="topic") for _ in range(3)]
    start = RequestHeader(
        api_key=ApiKeys.METADATA, api_version=9, correlation_id=1, client_id="client"
    ).to_bytes()
    whole = struct.pack(">i", 0) + start + MetadataRequest(topics=topics).encode(9)

    client = server.connect()
    for number in range(1000):
        mutated = bytearray(whole)
        struct.pack_into(">i", mutated, 0, len(mutated) - 4)
        for _ in range(rng.randint(1, 4)):
            mutated[rng.randrange(len(mutated))] = rng.randrange(256)
        try:
            client.sock.sendall(mutated)
        except ConnectionError:
            pass
        else:
            if number % 5:
                continue
        client.close()
        client = server.connect()
    client.close()

    wait_until(lambda: server.socket_server.connection_count == 1)


def test_random_bytes_leave_the_server_alive(server: TestServer, canary: Client) -> None:
    rng = random.Random(11)

    for _ in range(200):
        client = server.connect()
        frame = struct.pack(">hh", rng.choice(SERVED), rng.randrange(13)) + rng.randbytes(60)
        client.send_frame(frame)
        if rng.random() < 0.5:
            client.reset()
        else:
            client.close()

    wait_until(lambda: server.socket_server.connection_count == 1)


def test_flood_of_bad_requests_does_not_flood_the_log(
    server: TestServer, canary: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(300):
        client = server.connect()
        client.send_frame(header(9999, 0))
        assert client.is_closed_by_server()
        client.close()

    assert 0 < len(warnings(caplog)) < 300


def test_announced_sizes_cost_no_memory(server: TestServer, canary: Client) -> None:
    clients = [server.connect() for _ in range(200)]
    before = _resident_bytes()

    for client in clients:
        client.sock.sendall(struct.pack(">i", MAX_BYTES) + b"x")
    canary.metadata(3)

    assert _resident_bytes() - before < 200 * 32 * 1024
    for client in clients:
        client.close()


def test_clients_that_leave_in_the_middle_are_forgotten(server: TestServer, canary: Client) -> None:
    for leave in (Client.close, Client.reset):
        for _ in range(20):
            client = server.connect()
            client.sock.sendall(struct.pack(">i", 1000) + b"half")
            leave(client)
        for _ in range(20):
            client = server.connect()
            client.send(MetadataRequest(topics=None), 1)
            leave(client)

    wait_until(lambda: server.socket_server.connection_count == 1)


def test_client_that_does_not_read_its_answers_holds_up_nobody(
    server: TestServer, canary: Client
) -> None:
    client = server.connect()
    request = RequestHeader(
        api_key=ApiKeys.API_VERSIONS, api_version=0, correlation_id=1, client_id="c"
    ).to_bytes()
    frame = struct.pack(">i", len(request)) + request

    def send() -> None:
        client.sock.settimeout(1)
        try:
            while True:
                client.sock.sendall(frame * 1000)
        except OSError:
            pass

    thread = threading.Thread(target=send)
    thread.start()
    for correlation_id in range(50):
        assert canary.metadata(correlation_id) == correlation_id
    thread.join(30)
    client.reset()

    wait_until(lambda: server.socket_server.connection_count == 1)


def _resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096
