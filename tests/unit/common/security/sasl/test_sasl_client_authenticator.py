"""The authenticator against a broker that answers from a script."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from kafkapy.common.errors import (
    ApiError,
    AuthenticationError,
    Errors,
    IllegalSaslStateError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kafkapy.common.network.io_platform import READ, WRITE
from kafkapy.common.network.kafka_channel import KafkaChannel
from kafkapy.common.network.send_receive import NetworkReceive
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.common.password import Password
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import encode_response_header, parse_request_header
from kafkapy.common.protocol.message_registry import request_class
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.common.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.common.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.common.security.sasl.plain_sasl_client import PlainSaslClient
from kafkapy.common.security.sasl.sasl_client import SaslClient
from kafkapy.common.security.sasl.sasl_client_authenticator import SaslClientAuthenticator
from tests.helpers.in_memory_transport import InMemoryTransport
from tests.helpers.mock_time import MockTime

PEER = SocketAddress(socket.AF_INET, ("127.0.0.1", 9094), "broker.example")


def offering(handshake: int = 1, authenticate: int = 2) -> ApiVersionsResponse:
    ranges = {ApiKeys.SASL_HANDSHAKE: handshake, ApiKeys.SASL_AUTHENTICATE: authenticate}
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=version)
            for key, version in ranges.items()
        ]
    )


class Script:
    """A broker's answers in order, and what it was asked."""

    def __init__(self, *responses: Message, piece_bytes: int = 1 << 20) -> None:
        self.transport = InMemoryTransport(max_bytes_per_call=piece_bytes)
        self.responses = list(responses)
        self.requests: list[Message] = []
        self.versions: list[int] = []

    def authenticator(
        self, time: MockTime, new_sasl_client: Callable[[], SaslClient] | None = None
    ) -> SaslClientAuthenticator:
        channel = KafkaChannel(
            "1", self.transport, receive=NetworkReceive(), client_address="127.0.0.1"
        )
        return SaslClientAuthenticator(
            channel,
            PEER,
            mechanism="PLAIN",
            new_sasl_client=new_sasl_client
            or (lambda: PlainSaslClient("alice", Password("s3cret"))),
            client_id="test",
            time=time,
        )

    def play(self, authenticator: SaslClientAuthenticator) -> None:
        """To the end of the authentication."""
        for _ in range(10_000):
            if not authenticator.authenticate():
                return
            self._answer()
        raise AssertionError("it does not end")

    def _answer(self) -> None:
        outgoing = self.transport.outgoing
        if len(outgoing) < 4 or len(outgoing) < 4 + int.from_bytes(outgoing[:4], "big"):
            return
        frame = bytes(outgoing[4:])
        outgoing.clear()
        header, position = parse_request_header(frame)
        request = request_class(header.api_key).decode(frame[position:], header.api_version)
        self.requests.append(request)
        self.versions.append(header.api_version)
        response = self.responses.pop(0)
        body = encode_response_header(
            ApiKeys(header.api_key), header.api_version, header.correlation_id
        ) + response.encode(header.api_version)
        self.transport.incoming += len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize("piece_bytes", [1, 7, 1 << 20])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_versions_mechanism_and_tokens_are_sent_in_turn(
    time: MockTime, piece_bytes: int, version: int
) -> None:
    script = Script(
        offering(authenticate=version),
        SaslHandshakeResponse(mechanisms=["PLAIN"]),
        SaslAuthenticateResponse(),
        piece_bytes=piece_bytes,
    )
    authenticator = script.authenticator(time)

    script.play(authenticator)

    assert script.requests == [
        ApiVersionsRequest(),
        SaslHandshakeRequest(mechanism="PLAIN"),
        SaslAuthenticateRequest(auth_bytes=b"\0alice\0s3cret"),
    ]
    assert script.versions == [0, 1, version]
    assert authenticator.reauthenticate_at_ms is None


def test_it_waits_for_room_to_write_and_then_for_the_answer(time: MockTime) -> None:
    script = Script()
    script.transport.send_room = 5
    authenticator = script.authenticator(time)

    assert authenticator.authenticate() == WRITE
    script.transport.send_room = 1000
    assert authenticator.authenticate() == READ


def test_session_is_renewed_before_its_end_without_asking_for_versions_again(
    time: MockTime,
) -> None:
    accepted = (
        SaslHandshakeResponse(mechanisms=["PLAIN"]),
        SaslAuthenticateResponse(session_lifetime_ms=10_000),
    )
    script = Script(offering(), *accepted, *accepted)
    authenticator = script.authenticator(time)
    started_ms = time.hi_res_clock_ms()

    script.play(authenticator)
    assert authenticator.reauthenticate_at_ms is not None
    assert started_ms + 8_500 <= authenticator.reauthenticate_at_ms <= started_ms + 9_500
    time.sleep(9_000)
    script.play(authenticator)

    assert script.versions == [0, 1, 2, 1, 2]
    assert authenticator.reauthenticate_at_ms >= started_ms + 9_000 + 8_500


REFUSED = SaslAuthenticateResponse(
    error_code=Errors.SASL_AUTHENTICATION_FAILED.code, error_message="Wrong, wrong"
)


@pytest.mark.parametrize(
    ("responses", "kind", "reason"),
    [
        ([offering(), SaslHandshakeResponse(), REFUSED], SaslAuthenticationError, "Wrong, wrong"),
        (
            [offering(), SaslHandshakeResponse(), SaslAuthenticateResponse(error_code=58)],
            SaslAuthenticationError,
            Errors.SASL_AUTHENTICATION_FAILED.message,
        ),
        (
            [offering(), SaslHandshakeResponse(), SaslAuthenticateResponse(auth_bytes=b"more")],
            SaslAuthenticationError,
            "the server asks for more",
        ),
        (
            [offering(), SaslHandshakeResponse(error_code=33, mechanisms=["GSSAPI", "OTHER"])],
            UnsupportedSaslMechanismError,
            "it is not enabled there (sasl.mechanism); those are: GSSAPI, OTHER",
        ),
        (
            [offering(), SaslHandshakeResponse(error_code=34)],
            IllegalSaslStateError,
            "it does not offer SASL there",
        ),
        ([ApiVersionsResponse()], IllegalSaslStateError, "it does not offer SASL there"),
        ([offering(handshake=0)], IllegalSaslStateError, "it does not offer SASL there"),
    ],
)
def test_refusal_names_broker_mechanism_and_reason(
    time: MockTime, responses: list[Message], kind: type[ApiError], reason: str
) -> None:
    script = Script(*responses)

    with pytest.raises(kind) as raised:
        script.play(script.authenticator(time))

    assert isinstance(raised.value, AuthenticationError)
    assert str(raised.value).startswith(
        f"Authentication at broker.example:9094 by PLAIN failed: {reason}"
    )
    assert "s3cret" not in str(raised.value)


def test_token_that_cannot_be_had_is_a_refusal_without_its_text(time: MockTime) -> None:
    def no_token() -> SaslClient:
        raise PermissionError("for s3cret")

    script = Script(offering(), SaslHandshakeResponse())

    with pytest.raises(SaslAuthenticationError, match=r"no token, because of PermissionError$"):
        script.play(script.authenticator(time, no_token))


def test_answer_that_is_none_is_a_refusal(time: MockTime) -> None:
    script = Script()
    authenticator = script.authenticator(time)
    authenticator.authenticate()
    script.transport.incoming += b"\0\0\0\5HTTP/"

    with pytest.raises(SaslAuthenticationError, match="no response of Kafka"):
        authenticator.authenticate()
