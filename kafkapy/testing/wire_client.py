"""A client that speaks any version of any API."""

from __future__ import annotations

import itertools
import socket
import struct
from collections import deque
from typing import TypeVar, cast

from kafkapy.common.errors import KafkaError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.header_versions import response_header_version
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.message_registry import response_class
from kafkapy.common.protocol.schema import Message

_SIZE = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")

MessageT = TypeVar("MessageT", bound=Message)


class ConnectionClosed(KafkaError):
    """The broker has closed the connection."""


class WireClient:
    """One blocking connection; requests may be pipelined. Not thread-safe."""

    def __init__(
        self, address: tuple[str, int], *, client_id: str | None = None, timeout: float = 20
    ) -> None:
        self._socket = socket.create_connection(address, timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._correlation_ids = itertools.count(1)
        self._in_flight: deque[tuple[ApiKeys, int, int]] = deque()

    def close(self) -> None:
        self._socket.close()

    def ask(self, message: Message, answer: type[MessageT], version: int | None = None) -> MessageT:
        """Sends and waits for the response; in the highest version unless told."""
        self.send(message, version)
        response = self.receive()
        assert isinstance(response, answer)
        return response

    def send(
        self, message: Message, version: int | None = None, *, expects_response: bool = True
    ) -> None:
        api_key = message.API_KEY
        assert api_key is not None
        if version is None:
            version = api_key.max_version
        correlation_id = next(self._correlation_ids)
        header = RequestHeader(
            api_key=api_key,
            api_version=version,
            correlation_id=correlation_id,
            client_id=cast(str, self._client_id),
        )
        if expects_response:
            self._in_flight.append((api_key, version, correlation_id))
        self.send_frame(header.to_bytes() + message.encode(version))

    def receive(self) -> Message:
        """The response to the oldest request not answered yet."""
        api_key, version, expected_id = self._in_flight.popleft()
        frame = memoryview(self.receive_frame())
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        assert correlation_id == expected_id
        position = _CORRELATION_ID.size
        if response_header_version(api_key, version) == 1:
            assert frame[position] == 0, "tagged fields in a response header"
            position += 1
        response, end = response_class(api_key).decode_from(frame, position, version)
        assert end == len(frame), f"{len(frame) - end} bytes after the response"
        return response

    def send_frame(self, frame: bytes) -> None:
        self._socket.sendall(_SIZE.pack(len(frame)) + frame)

    def receive_frame(self) -> bytes:
        (size,) = _SIZE.unpack(self._receive_exactly(_SIZE.size))
        return self._receive_exactly(size)

    def _receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                chunk = self._socket.recv(size - len(data))
            except ConnectionResetError as e:
                raise ConnectionClosed("the connection was reset") from e
            if not chunk:
                raise ConnectionClosed("the broker has closed the connection")
            data += chunk
        return bytes(data)
