"""The Kafka protocol by hand over a plain socket: for requests no client would send, and for a
look at what is stored that no codec under test stands in the way of."""

import socket
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

PRODUCE = 0
FETCH = 1
METADATA = 3
API_VERSIONS = 18

_LATEST_FETCH_BYTES = 50 * 1024 * 1024


def string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def data(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def request(
    api_key: int,
    version: int,
    body: bytes = b"",
    *,
    correlation_id: int = 1,
    flexible: bool = False,
) -> bytes:
    """A request without its length: header v1, or v2 with an empty tag section."""
    header = struct.pack(">hhi", api_key, version, correlation_id) + string("wire-test")
    return header + (b"\x00" if flexible else b"") + body


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Reader:
    """Walks over the fields of an answer."""

    def __init__(self, buffer: bytes) -> None:
        self.buffer = buffer
        self.position = 0

    def unpack(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(">" + form, self.buffer, self.position)
        self.position += struct.calcsize(">" + form)
        return values

    def number(self, form: str) -> int:
        return self.unpack(form)[0]

    def take(self, size: int) -> bytes:
        taken = self.buffer[self.position : self.position + max(size, 0)]
        self.position += max(size, 0)
        return taken

    def string(self) -> str:
        return self.take(self.number("h")).decode()

    def data(self) -> bytes:
        return self.take(self.number("i"))

    @property
    def remaining(self) -> int:
        return len(self.buffer) - self.position


class Connection:
    """One socket to a broker."""

    def __init__(self, address: tuple[str, int], *, timeout_s: float = 10) -> None:
        self.socket = socket.create_connection(address, timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, payload: bytes) -> None:
        self.socket.sendall(framed(payload))

    def receive(self) -> bytes | None:
        """The next answer, without its length; None when the broker closed the connection."""
        length = self._receive_exactly(4)
        return None if length is None else self._receive_exactly(struct.unpack(">i", length)[0])

    def ask(self, payload: bytes) -> Reader:
        """The answer to a request, behind its correlation id."""
        self.send(payload)
        answer = self.receive()
        assert answer is not None, "connection closed instead of an answer"
        reader = Reader(answer)
        assert reader.number("i") == struct.unpack_from(">i", payload, 4)[0]
        return reader

    def is_closed_by_peer(self) -> bool:
        """Waits for the broker to close; False when it answers instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _receive_exactly(self, size: int) -> bytes | None:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self.socket.recv(size - len(received))
            except ConnectionError:
                return None
            if not piece:
                return None
            received += piece
        return bytes(received)


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """The header of a magic 2 batch as the broker keeps it."""

    base_offset: int
    magic: int
    attributes: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def codec_id(self) -> int:
        return self.attributes & 0x07


def fetch_request(
    version: int, topic: str, partition: int, offset: int = 0, *, max_bytes: int | None = None
) -> bytes:
    """Fetch v0 to v6 of one partition, waiting for nothing."""
    limit = _LATEST_FETCH_BYTES if max_bytes is None else max_bytes
    body = struct.pack(">iii", -1, 100, 0)
    if version >= 3:
        body += struct.pack(">i", limit)
    if version >= 4:
        body += struct.pack(">b", 0)
    log_start_offset = struct.pack(">q", -1) if version >= 5 else b""
    entry = struct.pack(">iq", partition, offset) + log_start_offset + struct.pack(">i", limit)
    return request(FETCH, version, body + array([string(topic) + array([entry])]))


def read_fetch(answer: Reader, version: int) -> tuple[int, int, bytes]:
    """Error code, high watermark and records of the only partition in a Fetch v0 to v6 answer."""
    if version >= 1:
        answer.number("i")
    assert answer.number("i") == 1
    answer.string()
    assert answer.number("i") == 1
    _, error, high_watermark = answer.unpack("ihq")
    if version >= 4:
        answer.number("q")
    if version >= 5:
        answer.number("q")
    if version >= 4:
        for _ in range(answer.number("i")):
            answer.unpack("qq")
    return error, high_watermark, answer.data()


def produce_request(
    version: int, topic: str, partition: int, records: bytes, *, acks: int = -1
) -> bytes:
    """Produce v0 to v8 to one partition."""
    body = string(None) if version >= 3 else b""
    body += struct.pack(">hi", acks, 10_000)
    entry = struct.pack(">i", partition) + data(records)
    return request(PRODUCE, version, body + array([string(topic) + array([entry])]))


def read_produce(answer: Reader) -> tuple[int, int]:
    """Error code and base offset of the only partition in a Produce answer."""
    assert answer.number("i") == 1
    answer.string()
    assert answer.number("i") == 1
    _, error, base_offset = answer.unpack("ihq")
    return error, base_offset


def stored_batches(address: tuple[str, int], topic: str, partition: int = 0) -> list[StoredBatch]:
    """Every batch of a partition, read with Fetch v4."""
    found: list[StoredBatch] = []
    offset = 0
    with Connection(address) as connection:
        while True:
            answer = connection.ask(fetch_request(4, topic, partition, offset))
            error, high_watermark, records = read_fetch(answer, 4)
            assert error == 0
            for batch, next_offset in _batches(records):
                found.append(batch)
                offset = next_offset
            if offset >= high_watermark:
                return found


def _batches(records: bytes) -> Iterator[tuple[StoredBatch, int]]:
    position = 0
    while position + 12 <= len(records):
        base_offset, length = struct.unpack_from(">qi", records, position)
        if position + 12 + length > len(records):
            return
        magic = records[position + 16]
        assert magic == 2
        attributes, last_offset_delta = struct.unpack_from(">hi", records, position + 21)
        producer = struct.unpack_from(">qhii", records, position + 43)
        batch = StoredBatch(base_offset, magic, attributes, *producer)
        yield batch, base_offset + last_offset_delta + 1
        position += 12 + length


@dataclass(frozen=True, slots=True)
class LegacyMessage:
    """An entry of a magic 0 or 1 message set."""

    offset: int
    magic: int
    attributes: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None


def legacy_message(
    magic: int,
    value: bytes | None,
    *,
    key: bytes | None = None,
    offset: int = 0,
    timestamp_ms: int = 0,
    attributes: int = 0,
) -> bytes:
    """One message with its offset, size and CRC."""
    stamp = struct.pack(">q", timestamp_ms) if magic == 1 else b""
    body = struct.pack(">bb", magic, attributes) + stamp + data(key) + data(value)
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(message)) + message


def legacy_messages(message_set: bytes) -> list[LegacyMessage]:
    """The whole messages of a set, their CRCs checked; a cut last one is left out."""
    found = []
    position = 0
    while position + 12 <= len(message_set):
        offset, size = struct.unpack_from(">qi", message_set, position)
        message = message_set[position + 12 : position + 12 + size]
        if len(message) < size:
            break
        assert struct.unpack_from(">I", message)[0] == zlib.crc32(message[4:])
        reader = Reader(message)
        _, magic, attributes = reader.unpack("Ibb")
        timestamp_ms = reader.number("q") if magic == 1 else None
        key = _nullable(reader)
        value = _nullable(reader)
        found.append(LegacyMessage(offset, magic, attributes, timestamp_ms, key, value))
        position += 12 + size
    return found


def _nullable(reader: Reader) -> bytes | None:
    size = reader.number("i")
    return None if size < 0 else reader.take(size)
