"""Requests and responses over one connection to one broker."""

from __future__ import annotations

import logging
import socket
import struct
import threading

from kafkapy.common.errors import NetworkError, RequestTimeoutError
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    response_header_version,
)
from kafkapy.common.protocol.message_registry import response_class
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

_SIZE = struct.Struct(">i")
DEFAULT_RECONNECT_BACKOFF_MS = 20
DEFAULT_RECONNECT_BACKOFF_MAX_MS = 1_000
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
    ) -> None:
        self.node = node  # constant after construction
        self._client_id = client_id
        self._time = time
        self._request_timeout_ms = request_timeout_ms
        self._connection_setup_timeout_ms = connection_setup_timeout_ms
        self._reconnect_backoff = reconnect_backoff or ExponentialBackoff(
            DEFAULT_RECONNECT_BACKOFF_MS, 2, DEFAULT_RECONNECT_BACKOFF_MAX_MS
        )
        self._closed = threading.Event()
        # used by the sending thread only
        self._correlation_id = 0
        self._failures = 0
        self._retry_at_ms = 0
        self._connected = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None  # guarded by self._lock

    @property
    def is_connected(self) -> bool:
        return self._connected

    def ready(self) -> None:
        """Connect if that is not done, waiting the backoff first; NetworkError when it fails."""
        if self._connected:
            return
        delay_ms = self._retry_at_ms - self._time.hi_res_clock_ms()
        if delay_ms > 0:
            self._closed.wait(delay_ms / 1000)
        self._ensure_open()
        try:
            self._connect()
        except OSError as error:
            self.disconnect()
            self._on_failure()
            self._ensure_open()
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
        connection = self._socket
        try:
            if connection is None:
                raise OSError("disconnected")
            response = self._exchange(connection, header, request)
        except (OSError, ProtocolError) as error:
            self.disconnect()
            self._on_failure()
            self._ensure_open()
            if isinstance(error, TimeoutError):
                raise RequestTimeoutError(
                    f"No response from {self.node} in {self._request_timeout_ms} ms"
                ) from error
            raise NetworkError(f"Connection to {self.node} was lost: {error}") from error
        self._failures = 0
        return response

    def disconnect(self) -> None:
        """By the sending thread, or once it has ended."""
        self._connected = False
        with self._lock:
            connection, self._socket = self._socket, None
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
        """Tries the host's addresses in turn; OSError of the last when none answers."""
        addresses = socket.getaddrinfo(self.node.host, self.node.port, type=socket.SOCK_STREAM)
        for index, (family, kind, protocol, _, address) in enumerate(addresses):
            connection = socket.socket(family, kind, protocol)
            # Known before it is connected, so that closing also ends a connection attempt.
            with self._lock:
                self._socket = connection
            try:
                self._ensure_open()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.settimeout(self._connection_setup_timeout_ms / 1000)
                connection.connect(address)
                self._connected = True
                return
            except OSError:
                self.disconnect()
                if index == len(addresses) - 1:
                    raise

    def _exchange(
        self, connection: socket.socket, header: RequestHeader, request: Message
    ) -> Message:
        version = header.api_version
        payload = header.to_bytes() + request.encode(version)
        deadline_ms = self._time.hi_res_clock_ms() + self._request_timeout_ms
        connection.settimeout(self._request_timeout_ms / 1000)
        connection.sendall(_SIZE.pack(len(payload)) + payload)
        (size,) = _SIZE.unpack(self._receive(connection, _SIZE.size, deadline_ms))
        if not 4 <= size <= MAX_RESPONSE_BYTES:
            raise ProtocolError(f"a response of {size} bytes")
        buffer = memoryview(self._receive(connection, size, deadline_ms))
        response_header, position = ResponseHeader.decode_from(
            buffer, 0, response_header_version(header.api_key, version)
        )
        if response_header.correlation_id != header.correlation_id:
            raise ProtocolError(
                f"correlation id {response_header.correlation_id} instead of "
                f"{header.correlation_id}"
            )
        return response_class(header.api_key).decode(buffer[position:], version)

    def _receive(self, connection: socket.socket, size: int, deadline_ms: int) -> bytearray:
        buffer = bytearray(size)
        view = memoryview(buffer)
        received = 0
        while received < size:
            remaining_ms = deadline_ms - self._time.hi_res_clock_ms()
            if remaining_ms <= 0:
                raise TimeoutError
            connection.settimeout(remaining_ms / 1000)
            count = connection.recv_into(view[received:])
            if count == 0:
                raise ConnectionResetError("closed by the peer")
            received += count
        return buffer

    def _on_failure(self) -> None:
        delay_ms = self._reconnect_backoff.backoff_ms(self._failures)
        self._failures += 1
        self._retry_at_ms = self._time.hi_res_clock_ms() + delay_ms

    def _ensure_open(self) -> None:
        if self._closed.is_set():
            raise ClientClosedError(f"The client of {self.node} is closed")
