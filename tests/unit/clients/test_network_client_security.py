"""What a NetworkClient makes of refusals and of sessions that end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkapy.clients.client_channel_builder import client_channel_builder
from kafkapy.clients.client_config import CommonClientConfig
from kafkapy.common.errors import Errors, SaslAuthenticationError, SslAuthenticationError
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.common.protocol.messages.heartbeat import HeartbeatResponse
from kafkapy.common.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.common.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.common.security.sasl.sasl_clients import login_of
from tests.helpers.mock_time import MockTime
from tests.unit.clients.test_network_client import Peer, supported

CONFIG = CommonClientConfig(
    bootstrap_servers=("127.0.0.1:1",),
    security_protocol="SASL_PLAINTEXT",
    sasl_mechanism="PLAIN",
    sasl_jaas_config=login_of("alice", "s3cret"),
)


@pytest.fixture
def sasl_peer(time: MockTime) -> Iterator[Peer]:
    peer = Peer(time, client_channel_builder(CONFIG, time, client_id="test"))
    yield peer
    peer.close()


@pytest.fixture
def plaintext_peer(time: MockTime) -> Iterator[Peer]:
    peer = Peer(time)
    yield peer
    peer.close()


def answer(peer: Peer, kind: type[Message], response: Message) -> None:
    correlation_id, version, request = peer.read()
    assert isinstance(request, kind)
    peer.write(correlation_id, version, response)


def authenticate(peer: Peer, verdict: SaslAuthenticateResponse, *, again: bool = False) -> None:
    if not again:
        answer(peer, ApiVersionsRequest, supported())
    answer(peer, SaslHandshakeRequest, SaslHandshakeResponse(mechanisms=["PLAIN"]))
    answer(peer, SaslAuthenticateRequest, verdict)


def make_ready(peer: Peer, *, session_lifetime_ms: int = 0) -> None:
    peer.client.ready(peer.node, peer.now_ms)
    peer.accept()
    authenticate(peer, SaslAuthenticateResponse(session_lifetime_ms=session_lifetime_ms))
    answer(peer, ApiVersionsRequest, supported())
    peer.until(lambda: peer.client.is_ready(peer.node, peer.now_ms))


def test_node_is_ready_once_it_knows_who_this_is(sasl_peer: Peer) -> None:
    make_ready(sasl_peer)

    sasl_peer.send()
    sasl_peer.answer()
    sasl_peer.until(lambda: sasl_peer.responses)


def test_refused_password_is_kept_as_the_reason_of_the_disconnection(sasl_peer: Peer) -> None:
    sasl_peer.client.ready(sasl_peer.node, sasl_peer.now_ms)
    sasl_peer.accept()
    authenticate(
        sasl_peer, SaslAuthenticateResponse(error_code=Errors.SASL_AUTHENTICATION_FAILED.code)
    )
    sasl_peer.until(lambda: sasl_peer.client.connection_failed(sasl_peer.node))

    error = sasl_peer.client.authentication_error(sasl_peer.node)
    assert isinstance(error, SaslAuthenticationError)
    assert f"127.0.0.1:{sasl_peer.node.port} by PLAIN" in str(error)
    assert not sasl_peer.client.can_connect(sasl_peer.node.id, sasl_peer.now_ms)


def test_refusal_is_told_to_whoever_waits_for_metadata(sasl_peer: Peer) -> None:
    sasl_peer.metadata.bootstrap([("127.0.0.1", sasl_peer.node.port)])
    sasl_peer.client.close()
    sasl_peer.client = sasl_peer.new_client(metadata=sasl_peer.metadata)
    sasl_peer.accept()
    authenticate(
        sasl_peer, SaslAuthenticateResponse(error_code=Errors.SASL_AUTHENTICATION_FAILED.code)
    )

    def poll_and_check() -> bool:
        sasl_peer.metadata.maybe_raise_fatal_error()
        return False

    with pytest.raises(SaslAuthenticationError):
        sasl_peer.until(poll_and_check)


def test_session_is_renewed_on_the_same_connection_once_nothing_is_in_flight(
    sasl_peer: Peer, time: MockTime
) -> None:
    make_ready(sasl_peer, session_lifetime_ms=500)
    sasl_peer.send()
    correlation_id, version, _ = sasl_peer.read()
    time.sleep(480)

    # The session is as good as over: no further request, and the one under way comes first.
    assert not sasl_peer.client.is_ready(sasl_peer.node, sasl_peer.now_ms)
    sasl_peer.poll()
    sasl_peer.write(correlation_id, version, HeartbeatResponse())
    sasl_peer.until(lambda: sasl_peer.responses)
    authenticate(sasl_peer, SaslAuthenticateResponse(session_lifetime_ms=500), again=True)
    answer(sasl_peer, ApiVersionsRequest, supported())

    sasl_peer.until(lambda: sasl_peer.client.is_ready(sasl_peer.node, sasl_peer.now_ms))
    assert sasl_peer.responses[0].message is not None
    sasl_peer.send()
    sasl_peer.answer()
    sasl_peer.until(lambda: len(sasl_peer.responses) == 2)


def test_plaintext_client_at_a_tls_listener_hears_so(plaintext_peer: Peer) -> None:
    peer = plaintext_peer
    peer.client.ready(peer.node, peer.now_ms)
    peer.accept()
    peer.read()
    assert peer.connection is not None
    peer.connection.sendall(b"\x15\x03\x03\x00\x02\x02\x50")  # the alert of a Java broker
    peer.connection.close()
    peer.until(lambda: peer.client.connection_failed(peer.node))

    error = peer.client.authentication_error(peer.node)
    assert isinstance(error, SslAuthenticationError)
    assert str(error) == (
        f"127.0.0.1:{peer.node.port} speaks TLS: security.protocol must be SSL or SASL_SSL"
    )


def test_time_out_can_say_what_became_of_the_connections(plaintext_peer: Peer) -> None:
    peer = plaintext_peer
    peer.metadata.bootstrap([("127.0.0.1", peer.node.port)])
    address = f"127.0.0.1:{peer.node.port}"
    assert peer.metadata.describe_nodes() == address
    peer.client.close()
    peer.client = peer.new_client(metadata=peer.metadata)
    peer.accept()
    peer.read()
    assert peer.connection is not None
    peer.connection.close()

    peer.until(lambda: peer.metadata.describe_nodes() != address)

    assert peer.metadata.describe_nodes() == (
        f"{address} (closed by the peer; is its security.protocol another?)"
    )
