import socket
import threading
from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from kafkapy.clients.blocking_node_client import BlockingNodeClient, ClientClosedError
from kafkapy.clients.client_channel_builder import client_channel_builder
from kafkapy.clients.client_config import CommonClientConfig
from kafkapy.common.errors import NetworkError, RequestTimeoutError, SaslAuthenticationError
from kafkapy.common.network.channel_builders import ChannelBuilder
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.common.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.common.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkapy.common.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.common.security.sasl.sasl_clients import login_of
from kafkapy.metadata.broker import Node
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import SystemTime
from tests.helpers.waiting import wait_until
from tests.unit.clients.test_network_client import supported
from tests.unit.controller.fake_broker import FakeBroker, answer

REQUEST = UpdateMetadataRequest(controller_id=1)


@pytest.fixture
def peer() -> Iterator[FakeBroker]:
    peer = FakeBroker()
    yield peer
    peer.close()


def client_of(
    port: int,
    *,
    timeout_ms: int = 10_000,
    backoff_ms: int = 1,
    channel_builder: ChannelBuilder | None = None,
) -> BlockingNodeClient:
    return BlockingNodeClient(
        Node(0, "127.0.0.1", port),
        client_id="test",
        time=SystemTime(),
        request_timeout_ms=timeout_ms,
        reconnect_backoff=ExponentialBackoff(backoff_ms, 2, max(backoff_ms, 10)),
        channel_builder=channel_builder,
    )


def test_each_request_has_its_correlation_id_and_gets_its_response(peer: FakeBroker) -> None:
    client = client_of(peer.port)

    responses = [client.send_and_receive(REQUEST, version) for version in (5, 8)]

    assert responses == [UpdateMetadataResponse(), UpdateMetadataResponse()]
    assert [h.correlation_id for h in peer.headers] == [1, 2]
    assert [h.api_version for h in peer.headers] == [5, 8]
    assert {h.client_id for h in peer.headers} == {"test"}
    client.close()


def test_refused_connection_is_a_network_error_and_the_client_stays_usable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = client_of(port)

    for _ in range(3):
        with pytest.raises(NetworkError):
            client.send_and_receive(REQUEST, 8)

    assert not client.is_connected
    client.close()


def test_connection_closed_by_the_peer_is_made_again(peer: FakeBroker) -> None:
    client = client_of(peer.port)
    peer.respond = lambda request: None
    with pytest.raises(NetworkError):
        client.send_and_receive(REQUEST, 8)
    assert not client.is_connected

    peer.respond = answer

    assert client.send_and_receive(REQUEST, 8) == UpdateMetadataResponse()
    client.close()


def test_silence_is_a_timeout(peer: FakeBroker) -> None:
    hold: SimpleQueue[Message] = SimpleQueue()
    peer.respond = lambda request: hold.get()
    client = client_of(peer.port, timeout_ms=50)

    with pytest.raises(RequestTimeoutError):
        client.send_and_receive(REQUEST, 8)

    assert not client.is_connected
    hold.put(UpdateMetadataResponse())
    client.close()


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff\xff\xff\xff",  # negative size
        b"\x7f\xff\xff\xff",  # huge size
        b"\x00\x00\x00\x07\x00\x00\x00\x63\x00\x00\x00",  # another correlation id
        b"\x00\x00\x00\x04\x00\x00\x00\x01",  # nothing after the header
    ],
)
def test_malformed_response_is_a_network_error(garbage: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = client_of(listener.getsockname()[1])

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(garbage)
                connection.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()

        with pytest.raises(NetworkError):
            client.send_and_receive(REQUEST, 8)

        thread.join()
    client.close()


def test_close_from_another_thread_ends_the_wait_for_a_response(peer: FakeBroker) -> None:
    hold: SimpleQueue[Message] = SimpleQueue()
    peer.respond = lambda request: hold.get()
    client = client_of(peer.port, timeout_ms=60_000)
    outcomes: SimpleQueue[BaseException] = SimpleQueue()

    def send() -> None:
        try:
            client.send_and_receive(REQUEST, 8)
        except NetworkError as error:
            outcomes.put(error)

    thread = threading.Thread(target=send)
    thread.start()
    wait_until(lambda: peer.requests)

    client.initiate_close()

    assert isinstance(outcomes.get(timeout=10), ClientClosedError)
    thread.join()
    hold.put(UpdateMetadataResponse())
    client.close()


def test_close_ends_the_wait_for_the_next_connection_attempt() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    client = client_of(port, backoff_ms=60_000)
    with pytest.raises(NetworkError):
        client.ready()
    outcomes: SimpleQueue[BaseException] = SimpleQueue()

    def connect() -> None:
        try:
            client.ready()
        except NetworkError as error:
            outcomes.put(error)

    thread = threading.Thread(target=connect)
    thread.start()

    client.initiate_close()

    assert isinstance(outcomes.get(timeout=10), ClientClosedError)
    thread.join()
    client.close()


def test_closed_client_refuses_requests(peer: FakeBroker) -> None:
    client = client_of(peer.port)
    client.close()
    client.close()

    with pytest.raises(ClientClosedError):
        client.send_and_receive(REQUEST, 8)


SASL = CommonClientConfig(
    bootstrap_servers=("127.0.0.1:1",),
    security_protocol="SASL_PLAINTEXT",
    sasl_mechanism="PLAIN",
    sasl_jaas_config=login_of("alice", "s3cret"),
)


def sasl_client_of(peer: FakeBroker, verdict: SaslAuthenticateResponse) -> BlockingNodeClient:
    def respond(request: Message) -> Message | None:
        match request:
            case ApiVersionsRequest():
                return supported()
            case SaslHandshakeRequest():
                return SaslHandshakeResponse()
            case SaslAuthenticateRequest():
                return verdict
        return answer(request)

    peer.respond = respond
    builder = client_channel_builder(SASL, SystemTime(), client_id="test")
    return client_of(peer.port, channel_builder=builder)


def test_it_says_who_it_is_before_the_first_request(peer: FakeBroker) -> None:
    client = sasl_client_of(peer, SaslAuthenticateResponse())

    for _ in range(2):
        assert client.send_and_receive(REQUEST, 8) == UpdateMetadataResponse()

    assert peer.received(SaslAuthenticateRequest) == [
        SaslAuthenticateRequest(auth_bytes=b"\0alice\0s3cret")
    ]
    client.close()


def test_refused_password_is_an_error_of_its_own(peer: FakeBroker) -> None:
    client = sasl_client_of(peer, SaslAuthenticateResponse(error_code=58))

    with pytest.raises(SaslAuthenticationError, match=f"127.0.0.1:{peer.port} by PLAIN failed"):
        client.send_and_receive(REQUEST, 8)

    assert not client.is_connected
    client.close()


def test_session_that_is_over_is_left_for_a_new_connection(peer: FakeBroker) -> None:
    client = sasl_client_of(peer, SaslAuthenticateResponse(session_lifetime_ms=1))

    for _ in range(2):
        assert client.send_and_receive(REQUEST, 8) == UpdateMetadataResponse()
        wait_until(lambda: client.is_session_over)

    assert len(peer.received(SaslAuthenticateRequest)) == 2
    client.close()
