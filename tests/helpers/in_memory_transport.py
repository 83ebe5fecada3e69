"""A transport layer without sockets, in which a test decides how many bytes each call moves."""

from __future__ import annotations

import os
from collections.abc import Sequence

Buffer = bytes | bytearray | memoryview


class InMemoryTransport:
    """One end of a connection. What the other end sends is read here; see `transport_pair`.

    A call moves at most `max_bytes_per_call`; with `send_room` only so many bytes can be sent until
    a test makes more room.
    """

    def __init__(self, *, max_bytes_per_call: int = 1 << 30, send_room: int = 1 << 30) -> None:
        self.max_bytes_per_call = max_bytes_per_call
        self.send_room = send_room
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.is_closed = False
        self.peer_has_closed = False
        self.largest_recv = 0
        self.calls: list[str] = []

    def fileno(self) -> int:
        return -1

    def handshake(self) -> int:
        return 0

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        self.largest_recv = max(self.largest_recv, len(buffer))
        count = min(len(buffer), self.max_bytes_per_call, len(self.incoming))
        if count == 0 and not self.peer_has_closed:
            raise BlockingIOError
        memoryview(buffer)[:count] = self.incoming[:count]
        del self.incoming[:count]
        return count

    def send(self, buffer: Buffer, /) -> int:
        self.calls.append("send")
        return self._take(bytes(buffer))

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        self.calls.append("sendmsg")
        return self._take(b"".join(buffers))

    def send_file(self, fd: int, offset: int, count: int, /) -> int:
        self.calls.append("send_file")
        data = os.pread(fd, count, offset)
        return self._take(data) if data else 0

    def close(self) -> None:
        self.is_closed = True

    def _take(self, data: bytes) -> int:
        if self.send_room <= 0 and data:
            raise BlockingIOError
        taken = data[: min(self.max_bytes_per_call, self.send_room)]
        self.send_room -= len(taken)
        self.outgoing += taken
        return len(taken)


def transport_pair() -> tuple[InMemoryTransport, InMemoryTransport]:
    """Two ends of one connection."""
    left, right = InMemoryTransport(), InMemoryTransport()
    left.outgoing = right.incoming
    right.outgoing = left.incoming
    return left, right
