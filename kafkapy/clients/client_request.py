"""Requests of a client and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.common.errors import ApiError, UnsupportedVersionError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.schema import Message

MessageBuilder = Callable[[int], Message]


class VersionedRequest:
    """A request whose version is chosen when the broker that gets it is known. Immutable.

    `message` is the request itself, or a function that makes it for the chosen version. The
    highest version that both sides know is taken, between `min_version` and `max_version` where
    those are given.

    Ports: org.apache.kafka.common.requests.AbstractRequest.Builder
    """

    __slots__ = ("_message", "api_key", "max_version", "min_version")

    def __init__(
        self,
        message: Message | MessageBuilder,
        *,
        api_key: ApiKeys | None = None,
        min_version: int | None = None,
        max_version: int | None = None,
    ) -> None:
        """`api_key` is needed with a function only."""
        if api_key is None:
            api_key = message.API_KEY if isinstance(message, Message) else None
            if api_key is None:
                raise ValueError(f"{message!r} does not say which API it is")
        self._message = message
        self.api_key: ApiKeys = api_key
        self.min_version = min_version
        self.max_version = max_version

    def build(self, version: int) -> Message:
        """UnsupportedVersionError when the request cannot be expressed in this version."""
        message = self._message
        return message if isinstance(message, Message) else message(version)

    def __repr__(self) -> str:
        return f"VersionedRequest({self._message!r})"


RequestCompletionHandler = Callable[["ClientResponse"], None]


@dataclass(frozen=True, slots=True, eq=False)
class ClientRequest:
    """A request for one node, not sent yet. Compared by identity.

    Ports: org.apache.kafka.clients.ClientRequest
    """

    destination: int
    request: VersionedRequest
    correlation_id: int
    client_id: str
    created_ms: int
    expect_response: bool
    request_timeout_ms: int
    callback: RequestCompletionHandler | None = None

    @property
    def api_key(self) -> ApiKeys:
        return self.request.api_key

    def make_header(self, version: int) -> RequestHeader:
        return RequestHeader(
            api_key=self.request.api_key,
            api_version=version,
            correlation_id=self.correlation_id,
            client_id=self.client_id,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ClientResponse:
    """The end of a request: its response, or why there is none.

    Ports: org.apache.kafka.clients.ClientResponse
    """

    header: RequestHeader
    destination: int
    created_ms: int
    received_ms: int
    message: Message | None = None
    callback: RequestCompletionHandler | None = None
    disconnected: bool = False
    timed_out: bool = False
    version_mismatch: UnsupportedVersionError | None = None
    authentication_error: ApiError | None = None

    @property
    def has_response(self) -> bool:
        return self.message is not None

    @property
    def request_latency_ms(self) -> int:
        return self.received_ms - self.created_ms

    @property
    def api_version(self) -> int:
        return self.header.api_version

    def on_complete(self) -> None:
        if self.callback is not None:
            self.callback(self)
