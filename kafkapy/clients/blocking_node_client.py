"""Requests and responses over one connection to one broker."""

from __future__ import annotations

import logging
import select
import socket
import threading

from kafkapy.clients.cluster_connection_states import resolve_host
from kafkapy.common.errors import (
    AuthenticationError,
    NetworkError,
    RequestTimeoutError,
)
from kafkapy.common.network.channel_builders import ChannelBuilder, PlaintextChannelBuilder
from kafkapy.common.network.io_platform import READ, WRITE
from kafkapy.common.network.kafka_channel import KafkaChannel
from kafkapy.common.network.request_framing import frame_request, parse_response
from kafkapy.common.network.send_receive import (
    SCRATCH_BYTES,
    InvalidReceiveError,
    NetworkReceive,
)
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

DEFAULT_RECONNECT_BACKOFF_MS = 20
DEFAULT_RECONNECT_BACKOFF_MAX_MS = 1_000
# What ends a connection.
_LOST = (OSError, EOFError, ProtocolError, InvalidReceiveError, AuthenticationError)
# A response longer than this is a broken stream, not a response.
MAX_RESPONSE_BYTES = 100 * 1024 * 1024


class ClientClosedError(NetworkError):
    """The client was closed while, or before, it was used."""


class BlockingNodeClient:
    """A blocking client of one node: one request at a time, connecting when there is need.

    One thread sends; `initiate_close` may be called from any other and makes it return at once
    with ClientClosedError. After a failure the next connection waits its backoff, which starts
    over with the first response.

    Ports: org.apache.kafka.clients.NetworkClientUtils
    """

    def __init__(
        self,
        node: Node,
        *,
        client_id: str,
        time: Time,
        request_timeout_ms: int,
        connection_setup_timeout_ms: int = 10_000,
        reconnect_backoff: ExponentialBackoff | None = None,
        channel_builder: ChannelBuilder | None = None,
    ) -> None:
        """Connections are plaintext unless there is a builder of others."""
        self.node = node  # constant after construction
        self._client_id = client_id
        self._time = time
        self._request_timeout_ms = request_timeout_ms
        self._connection_setup_timeout_ms = connection_setup_timeout_ms
        self._reconnect_backoff = reconnect_backoff or ExponentialBackoff(
            DEFAULT_RECONNECT_BACKOFF_MS, 2, DEFAULT_RECONNECT_BACKOFF_MAX_MS
        )
        self._channel_builder = channel_builder or PlaintextChannelBuilder()
        self._scratch = bytearray(SCRATCH_BYTES)
        self._closed = threading.Event()
        # used by the sending thread only
        self._correlation_id = 0
        self._failures = 0
        self._retry_at_ms = 0
        self._channel: KafkaChannel | None = None  # once it is connected
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None  # guarded by self._lock

    @property
    def is_connected(self) -> bool:
        return self._channel is not None

    @property
    def is_session_over(self) -> bool:
        """It is time for the broker to be told again who this is."""
        authenticator = None if self._channel is None else self._channel.authenticator
        end_ms = None if authenticator is None else authenticator.reauthenticate_at_ms
        return end_ms is not None and self._time.hi_res_clock_ms() >= end_ms

    def ready(self) -> None:
        """Connect if that is not done, waiting the backoff first.

        NetworkError when it fails, AuthenticationError when one side does not accept the other.
        """
        if self._channel is not None:
            if not self.is_session_over:
                return
            # The broker would hang up at the next request: better to come as somebody new.
            self.disconnect()
        delay_ms = self._retry_at_ms - self._time.hi_res_clock_ms()
        if delay_ms > 0:
            self._closed.wait(delay_ms / 1000)
        self._ensure_open()
        try:
            self._connect()
        except _LOST as error:
            self.disconnect()
            self._on_failure()
            self._ensure_open()
            if isinstance(error, AuthenticationError):
                raise
            raise NetworkError(f"Connection to {self.node} failed: {error}") from error

    def send_and_receive(self, request: Message, version: int) -> Message:
        """The response. NetworkError and RequestTimeoutError leave the client disconnected and
        usable; the broker may or may not have handled the request."""
        self.ready()
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        if request.API_KEY is None:
            raise ValueError(f"{type(request).__name__} is not a request")
        header = RequestHeader(
            api_key=request.API_KEY,
            api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        try:
            response = self._exchange(header, request)
        except _LOST as error:
            self.disconnect()
            self._on_failure()
            self._ensure_open()
            if isinstance(error, AuthenticationError):
                raise
            if isinstance(error, TimeoutError):
                raise RequestTimeoutError(
                    f"No response from {self.node} in {self._request_timeout_ms} ms"
                ) from error
            raise NetworkError(f"Connection to {self.node} was lost: {error}") from error
        self._failures = 0
        return response

    def disconnect(self) -> None:
        """By the sending thread, or once it has ended."""
        channel, self._channel = self._channel, None
        with self._lock:
            connection, self._socket = self._socket, None
        if channel is not None:
            channel.close()
        if connection is not None:
            connection.close()

    def initiate_close(self) -> None:
        """From any thread: no further request, and whoever waits for a response returns."""
        self._closed.set()
        with self._lock:
            if self._socket is not None:
                try:
                    self._socket.shutdown(socket.SHUT_RDWR)
                except OSError as error:
                    logger.debug("%s had hung up already: %s", self.node, error)

    def close(self) -> None:
        """By the sending thread, or once it has ended."""
        self.initiate_close()
        self.disconnect()

    def _connect(self) -> None:
        """Tries the host's addresses in turn; raises what went wrong with the last."""
        addresses = resolve_host(self.node.host, self.node.port)
        for index, address in enumerate(addresses):
            connection = socket.socket(address.family, socket.SOCK_STREAM)
            # Known before it is connected, so that closing also ends a connection attempt.
            with self._lock:
                self._socket = connection
            try:
                self._ensure_open()
                self._prepare(connection, address)
                return
            except OSError:
                self.disconnect()
                if index == len(addresses) - 1:
                    raise

    def _prepare(self, connection: socket.socket, address: SocketAddress) -> None:
        deadline_ms = self._time.hi_res_clock_ms() + self._connection_setup_timeout_ms
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(self._connection_setup_timeout_ms / 1000)
        connection.connect(address.sockaddr)
        connection.setblocking(False)
        channel = self._channel_builder.build_channel(
            str(self.node.id),
            connection,
            receive=NetworkReceive(MAX_RESPONSE_BYTES),
            client_address=str(address.sockaddr[0]),
            peer=address,
        )
        while awaited := channel.prepare():
            self._wait(channel, awaited, deadline_ms)
        self._channel = channel

    def _exchange(self, header: RequestHeader, request: Message) -> Message:
        channel = self._channel
        assert channel is not None, "connected"
        deadline_ms = self._time.hi_res_clock_ms() + self._request_timeout_ms
        send = frame_request(header, request)
        while not send.write_to(channel.transport):
            self._wait(channel, WRITE, deadline_ms)
        while True:
            frame = channel.receive.read_from(channel.transport, self._scratch)
            if frame is not None:
                return parse_response(frame, header)
            self._wait(channel, READ, deadline_ms)

    def _wait(self, channel: KafkaChannel, events: int, deadline_ms: int) -> None:
        """Until the socket is ready; TimeoutError when it does not get so in time."""
        remaining_ms = deadline_ms - self._time.hi_res_clock_ms()
        poller = select.poll()
        poller.register(channel.fd, select.POLLIN if events & READ else select.POLLOUT)
        if remaining_ms <= 0 or not poller.poll(remaining_ms):
            raise TimeoutError("timed out")

    def _on_failure(self) -> None:
        delay_ms = self._reconnect_backoff.backoff_ms(self._failures)
        self._failures += 1
        self._retry_at_ms = self._time.hi_res_clock_ms() + delay_ms

    def _ensure_open(self) -> None:
        if self._closed.is_set():
            raise ClientClosedError(f"The client of {self.node} is closed")
