"""Frames on a connection: a 4-byte big-endian size, then that many bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final, Protocol

from kafkapy.common.errors import KafkaError
from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.network.transport_layer import Buffer, TransportLayer

UNLIMITED: Final = -1

BUFFER_TYPES: Final = (bytes, bytearray, memoryview)
SIZE: Final = Struct(">i")
SIZE_BYTES: Final = 4
# Most requests arrive whole in one read of this many bytes. What one read may take ahead of the
# current request is bounded by it too.
SCRATCH_BYTES: Final = 16 * 1024

_FIRST_ALLOCATION_BYTES: Final = 4096
_GROWTH: Final = 8
_LARGEST_EXPECTATION_BYTES: Final = 128 * 1024
_GATHERED_BUFFERS: Final = 64
# After this much one connection lets the others have their turn.
_WRITE_BUDGET_BYTES: Final = 1024 * 1024
# How an alert of TLS begins; as the size of a frame it would be more than 350 MB.
_TLS_ALERT: Final = 0x1503


class InvalidReceiveError(KafkaError):
    """The peer announced a frame that is not acceptable.

    Ports: org.apache.kafka.common.network.InvalidReceiveException
    """


class TlsPeerError(InvalidReceiveError):
    """The peer hung up with an alert of TLS, which is not spoken on this connection."""


class FileSlice(Protocol):
    """Part of a file that is sent as it is, such as FileRecords."""

    def fileno(self) -> int: ...

    @property
    def position(self) -> int:
        """Where the slice starts in the file."""
        ...

    @property
    def size_in_bytes(self) -> int: ...


Part = Buffer | FileSlice


class BufferingTransport(Protocol):
    """A transport that takes more from its socket than it has handed out."""

    @property
    def has_buffered(self) -> bool: ...


class NetworkReceive:
    """Turns one connection's bytes into frames. For one thread.

    Whatever is there is read at once: a small frame by a single read into a buffer that all
    connections share, of which only its own bytes are kept. A large frame's buffer grows with the
    bytes that have come, so announcing a size costs the peer's memory, not ours:
    `allocated <= max(4 KiB, 8 * received)`. After a large frame another of its size is expected,
    and read by a single read too, up to 128 KiB.

    Ports: org.apache.kafka.common.network.NetworkReceive
    """

    __slots__ = (
        "_ahead",
        "_body",
        "_expected",
        "_filled",
        "_max_size",
        "_memory_pool",
        "_on_memory_available",
        "_reserved",
        "_size",
        "is_waiting_for_memory",
        "read_ahead_of",
    )

    def __init__(
        self,
        max_size: int = UNLIMITED,
        memory_pool: MemoryPool | None = None,
        on_memory_available: Callable[[], None] = lambda: None,
    ) -> None:
        # constant after construction
        self._max_size = max_size
        self._memory_pool = memory_pool
        self._on_memory_available = on_memory_available
        # Read but not yet handed out: whole frames, or the start of one.
        self._ahead = bytearray()
        # The large frame in progress: `_filled` of its `_size` bytes are in `_body`. No size: none.
        self._body = bytearray()
        self._size = 0
        self._filled = 0
        # The size, prefix included, of the last frame if that was large and the next may be so too.
        self._expected = 0
        self._reserved = 0  # bytes of the memory pool held by the frame in progress
        self.is_waiting_for_memory = False
        # Taken from the socket, bytes may still be there and not here; set before the first read.
        self.read_ahead_of: BufferingTransport | None = None

    @property
    def has_buffered(self) -> bool:
        """Reading again may give a frame without the peer sending anything."""
        return len(self._ahead) > 0 or (
            self.read_ahead_of is not None and self.read_ahead_of.has_buffered
        )

    def read_from(self, transport: TransportLayer, scratch: bytearray) -> bytearray | None:
        """The next frame once it is complete.

        Raises InvalidReceiveError for a size that is negative or too large, EOFError when the peer
        has closed the connection and OSError when it failed.
        """
        if self._ahead and (frame := self._next_frame()) is not None:
            return frame
        if self.is_waiting_for_memory:
            return None
        if self._size > 0:
            return self._read_body(transport)
        if self._expected and not self._ahead:
            return self._read_expected(transport)
        try:
            count = transport.recv_into(scratch)
        except BlockingIOError:
            return None
        if count == 0:
            raise EOFError("closed by the peer")
        if count >= SIZE_BYTES and not self._ahead and self._memory_pool is None:
            (size,) = SIZE.unpack_from(scratch)
            end = SIZE_BYTES + size
            if SIZE_BYTES <= end <= count and (size <= self._max_size or self._max_size < 0):
                if end < count:
                    self._ahead = scratch[end:count]
                return scratch[SIZE_BYTES:end]
        self._ahead += memoryview(scratch)[:count]
        if (frame := self._next_frame()) is not None:
            return frame
        if self._size > 0 and count == len(scratch):
            return self._read_body(transport)
        return None

    def close(self) -> None:
        """Give back what the frame in progress reserved."""
        if self._reserved and self._memory_pool is not None:
            self._memory_pool.release(self._reserved)
            self._reserved = 0

    def _next_frame(self) -> bytearray | None:
        """A frame out of what was read ahead; otherwise the frame's start becomes the body."""
        ahead = self._ahead
        if len(ahead) < SIZE_BYTES:
            return None
        (size,) = SIZE.unpack_from(ahead)
        if size < 0 or (size > self._max_size and self._max_size != UNLIMITED):
            raise InvalidReceiveError(
                f"a frame of {size} bytes was announced, allowed are 0 to {self._max_size}"
            )
        if not self._reserve(size):
            return None
        end = SIZE_BYTES + size
        if len(ahead) >= end:
            frame = ahead[SIZE_BYTES:end]
            del ahead[:end]
            self._reserved = 0
            return frame
        if len(ahead) > SIZE_BYTES:
            self._size = size
            self._filled = len(ahead) - SIZE_BYTES
            self._body = bytearray(self._allocation())
            self._body[: self._filled] = memoryview(ahead)[SIZE_BYTES:]
            self._ahead = bytearray()
        return None

    def _allocation(self) -> int:
        """What the bytes that have come entitle the frame to."""
        return min(self._size, max(_FIRST_ALLOCATION_BYTES, _GROWTH * self._filled))

    def _reserve(self, size: int) -> bool:
        if self._memory_pool is not None and not self._reserved and size > 0:
            self.is_waiting_for_memory = not self._memory_pool.try_allocate(
                size, self._on_memory_available
            )
            if self.is_waiting_for_memory:
                return False
            self._reserved = size
        return True

    def _read_expected(self, transport: TransportLayer) -> bytearray | None:
        """Reads into a buffer of the expected size, which is the frame if the guess was right."""
        body = bytearray(self._expected)
        try:
            count = transport.recv_into(body)
        except BlockingIOError:
            return None
        if count == 0:
            raise EOFError("closed by the peer")
        size = self._expected - SIZE_BYTES
        if count >= SIZE_BYTES and SIZE.unpack_from(body)[0] == size:
            del body[:SIZE_BYTES]  # moves nothing: a bytearray may begin inside its memory
            self._body = body
            self._size = size
            self._filled = count - SIZE_BYTES
            return self._take_body() if self._filled == size else None
        self._expected = 0
        self._ahead = body[:count]
        frame = self._next_frame()
        if frame is None and self._size > 0 and count == len(body):
            return self._read_body(transport)
        return frame

    def _take_body(self) -> bytearray:
        """The large frame, now that it is complete."""
        body = self._body
        self._body = bytearray()
        is_typical = SCRATCH_BYTES < self._size <= _LARGEST_EXPECTATION_BYTES
        self._expected = SIZE_BYTES + self._size if is_typical and not self._memory_pool else 0
        self._size = 0
        self._reserved = 0
        return body

    def _read_body(self, transport: TransportLayer) -> bytearray | None:
        body = self._body
        while True:
            if self._filled == len(body):
                body += bytes(self._allocation() - self._filled)
            wanted = len(body) - self._filled
            try:
                # The view must be gone before the buffer can grow.
                with memoryview(body) as whole, whole[self._filled :] as rest:
                    count = transport.recv_into(rest)
            except BlockingIOError:
                return None
            if count == 0:
                if self._size >> 16 == _TLS_ALERT:
                    raise TlsPeerError("closed by the peer, which speaks TLS there")
                raise EOFError("closed by the peer in the middle of a frame")
            self._filled += count
            if self._filled == self._size:
                return self._take_body()
            if count < wanted:
                return None


class NetworkSend:
    """One frame on its way out: buffers and slices of files, in order. For one thread at a time.

    Ports: org.apache.kafka.common.network.NetworkSend
    """

    __slots__ = ("_offset", "_parts", "size")

    def __init__(self, parts: Iterable[Part], size: int) -> None:
        """`size` is that of all parts together."""
        self._parts = deque(parts)
        self._offset = 0  # sent of the first part
        self.size = size  # constant after construction

    @property
    def completed(self) -> bool:
        return not self._parts

    def write_to(self, transport: TransportLayer) -> bool:
        """Write what the connection takes; True once everything is written.

        Raises EOFError when a file has become shorter than the slice that was announced: the frame
        cannot be completed, so the connection is of no use any more.
        """
        parts = self._parts
        budget = _WRITE_BUDGET_BYTES
        try:
            while parts and budget > 0:
                part = parts[0]
                if not isinstance(part, BUFFER_TYPES):
                    budget -= self._write_file(part, transport, budget)
                    continue
                if len(parts) > 1:
                    count = transport.sendmsg(self._leading_buffers())
                elif self._offset:
                    count = transport.send(memoryview(part)[self._offset :])
                else:
                    count = transport.send(part)
                    if count == len(part):
                        parts.clear()
                        return True
                self._advance(count)
                budget -= count
        except BlockingIOError:
            return False
        return not parts

    def _write_file(self, part: FileSlice, transport: TransportLayer, budget: int) -> int:
        remaining = part.size_in_bytes - self._offset
        if remaining == 0:
            self._parts.popleft()
            self._offset = 0
            return 0
        count = transport.send_file(
            part.fileno(), part.position + self._offset, min(remaining, budget)
        )
        if count == 0:
            raise EOFError(f"a file lost the last {remaining} bytes of a slice being sent")
        if count == remaining:
            self._parts.popleft()
            self._offset = 0
        else:
            self._offset += count
        return count

    def _leading_buffers(self) -> list[Buffer]:
        buffers: list[Buffer] = []
        for part in self._parts:
            if not isinstance(part, BUFFER_TYPES):
                break
            buffers.append(part)
            if len(buffers) == _GATHERED_BUFFERS:
                break
        if self._offset:
            buffers[0] = memoryview(buffers[0])[self._offset :]
        return buffers

    def _advance(self, count: int) -> None:
        """Forget `count` bytes of leading buffers."""
        parts = self._parts
        count += self._offset
        while parts:
            part = parts[0]
            if not isinstance(part, BUFFER_TYPES) or len(part) > count:
                break
            count -= len(part)
            parts.popleft()
        self._offset = count
