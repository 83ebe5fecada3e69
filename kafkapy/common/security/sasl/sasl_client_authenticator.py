"""How a client makes itself known by SASL, in Kafka's own requests."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import TypeVar

from kafkapy.common.errors import (
    Errors,
    IllegalSaslStateError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kafkapy.common.network.io_platform import READ, WRITE
from kafkapy.common.network.kafka_channel import KafkaChannel
from kafkapy.common.network.request_framing import frame_request, parse_response
from kafkapy.common.network.send_receive import NetworkSend
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.headers import RequestHeader
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
from kafkapy.common.security.sasl.sasl_client import SaslClient, SaslError
from kafkapy.utils.time import Time

ResponseT = TypeVar("ResponseT", bound=Message)
# What it wants sent, and the frame that comes back.
_Conversation = Generator[NetworkSend, bytearray, None]

_SCRATCH_BYTES = 4096
_HANDSHAKE_VERSION = 1  # the first by which tokens travel in requests of their own
# A session is renewed after so much of its life, so that clients do not all come at once.
_RENEWAL_WINDOW = (0.85, 0.95)


class SaslClientAuthenticator:
    """Says who this client is: ApiVersions, SaslHandshake, then SaslAuthenticate as often as the
    mechanism needs. For one thread.

    Ports: org.apache.kafka.common.security.authenticator.SaslClientAuthenticator
    """

    def __init__(
        self,
        channel: KafkaChannel,
        peer: SocketAddress,
        *,
        mechanism: str,
        new_sasl_client: Callable[[], SaslClient],
        client_id: str,
        time: Time,
    ) -> None:
        # constant after construction
        self._channel = channel
        self._peer = peer
        self._mechanism = mechanism
        self._new_sasl_client = new_sasl_client
        self._client_id = client_id
        self._time = time
        self._scratch = bytearray(_SCRATCH_BYTES)

        self._correlation_id = 0
        self._authenticate_version: int | None = None  # known after the first authentication
        self._conversation: _Conversation | None = None
        self._pending_send: NetworkSend | None = None
        self._reauthenticate_at_ms: int | None = None

    @property
    def reauthenticate_at_ms(self) -> int | None:
        """Well before the end of the session, if the broker has set one."""
        return self._reauthenticate_at_ms

    def authenticate(self) -> int:
        transport = self._channel.transport
        try:
            if self._conversation is None:
                self._conversation = self._authenticate()
                self._pending_send = next(self._conversation)
            while True:
                if self._pending_send is not None:
                    if not self._pending_send.write_to(transport):
                        return WRITE
                    self._pending_send = None
                frame = self._channel.receive.read_from(transport, self._scratch)
                if frame is None:
                    return READ
                self._pending_send = self._conversation.send(frame)
        except StopIteration:
            self._conversation = None
            return 0

    def _authenticate(self) -> _Conversation:
        if self._authenticate_version is None:
            self._authenticate_version = yield from self._ask_for_version()
        yield from self._shake_hands()
        sasl_client = self._make_sasl_client()
        started_ms = self._time.hi_res_clock_ms()
        token: bytes | None = sasl_client.initial_response()
        while token is not None:
            response = yield from self._exchange(
                SaslAuthenticateRequest(auth_bytes=token),
                self._authenticate_version,
                SaslAuthenticateResponse,
            )
            if response.error_code != Errors.NONE.code:
                text = response.error_message or Errors.for_code(response.error_code).message
                raise SaslAuthenticationError(self._failure(text))
            try:
                token = sasl_client.respond(response.auth_bytes)
            except SaslError as error:
                raise SaslAuthenticationError(self._failure(str(error))) from error
        self._reauthenticate_at_ms = None
        if response.session_lifetime_ms > 0:
            lifetime_ms = response.session_lifetime_ms * random.uniform(*_RENEWAL_WINDOW)
            self._reauthenticate_at_ms = started_ms + int(lifetime_ms)

    def _make_sasl_client(self) -> SaslClient:
        try:
            return self._new_sasl_client()
        except Exception as error:
            # Somebody else's code gives out tokens. Its text may hold secrets, so it stays out.
            raise SaslAuthenticationError(
                self._failure(f"there is no token, because of {type(error).__name__}")
            ) from error

    def _ask_for_version(self) -> Generator[NetworkSend, bytearray, int]:
        """Which SaslAuthenticate both sides know."""
        response = yield from self._exchange(ApiVersionsRequest(), 0, ApiVersionsResponse)
        ranges = {each.api_key: each.max_version for each in response.api_keys}
        if ranges.get(ApiKeys.SASL_HANDSHAKE, -1) < _HANDSHAKE_VERSION:
            raise IllegalSaslStateError(self._failure("it does not offer SASL there"))
        return min(
            ranges.get(ApiKeys.SASL_AUTHENTICATE, 0), SaslAuthenticateRequest.VERSIONS.highest
        )

    def _shake_hands(self) -> _Conversation:
        response = yield from self._exchange(
            SaslHandshakeRequest(mechanism=self._mechanism),
            _HANDSHAKE_VERSION,
            SaslHandshakeResponse,
        )
        match Errors.for_code(response.error_code):
            case Errors.NONE:
                return
            case Errors.UNSUPPORTED_SASL_MECHANISM:
                offered = ", ".join(response.mechanisms)
                raise UnsupportedSaslMechanismError(
                    self._failure(f"it is not enabled there (sasl.mechanism); those are: {offered}")
                )
            case Errors.ILLEGAL_SASL_STATE:
                raise IllegalSaslStateError(self._failure("it does not offer SASL there"))
            case error:
                raise SaslAuthenticationError(self._failure(error.message))

    def _exchange(
        self, request: Message, version: int, response_type: type[ResponseT]
    ) -> Generator[NetworkSend, bytearray, ResponseT]:
        assert request.API_KEY is not None, "a request"
        header = RequestHeader(
            api_key=request.API_KEY,
            api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        self._correlation_id += 1
        frame = yield frame_request(header, request)
        try:
            response = parse_response(frame, header)
        except ProtocolError as error:
            raise SaslAuthenticationError(
                self._failure(f"its answer is no response of Kafka: {error}")
            ) from error
        assert isinstance(response, response_type)
        return response

    def _failure(self, reason: str) -> str:
        return f"Authentication at {self._peer} by {self._mechanism} failed: {reason}"
