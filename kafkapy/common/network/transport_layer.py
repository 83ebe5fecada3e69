"""How bytes get onto and off a connection."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Protocol

from kafkapy.common.network.io_platform import NATIVE, IoPlatform

Buffer = bytes | bytearray | memoryview


class TransportLayer(Protocol):
    """A non-blocking byte stream. For one thread.

    Every operation raises BlockingIOError when it can make no progress now, and another OSError
    when the connection has failed.

    Ports: org.apache.kafka.common.network.TransportLayer
    """

    def fileno(self) -> int: ...

    def handshake(self) -> int:
        """Make the connection usable: the events to wait for, 0 once that is done."""
        ...

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        """The number of bytes read; 0 when the peer has closed its side."""
        ...

    def send(self, buffer: Buffer, /) -> int: ...

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        """Send several buffers at once; like the others it may stop in the middle."""
        ...

    def send_file(self, fd: int, offset: int, count: int, /) -> int:
        """Send a slice of a file; 0 when the file ends at or before `offset`."""
        ...

    def close(self) -> None: ...


class PlaintextTransportLayer:
    """A TCP socket as it is. For one thread.

    Ports: org.apache.kafka.common.network.PlaintextTransportLayer
    """

    __slots__ = ("_send_file", "_socket", "recv_into", "send", "sendmsg")

    def __init__(self, sock: socket.socket, platform: IoPlatform = NATIVE) -> None:
        self._socket = sock
        self._send_file = platform.send_file
        # The socket's own methods: a layer of Python around each would show in small requests.
        self.recv_into = sock.recv_into
        self.send = sock.send
        self.sendmsg = sock.sendmsg

    def fileno(self) -> int:
        return self._socket.fileno()

    def handshake(self) -> int:
        return 0

    def send_file(self, fd: int, offset: int, count: int) -> int:
        return self._send_file(self._socket, fd, offset, count)

    def close(self) -> None:
        self._socket.close()
