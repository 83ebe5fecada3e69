"""Valid requests, ways to damage them, and a loop that sends damaged ones to a broker."""

import random
import selectors
import socket
import struct
import time
from collections.abc import Iterator

from kafkapy.common.errors import InvalidRequestError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.network.request_parser import RequestParser
from kafkapy.server.api_version_manager import ApiVersionManager
from tests.compat import wire

_CONNECTIONS = 24
# A damaged Fetch may ask to wait, a damaged Produce for no answer: such a connection is given up.
_PATIENCE_S = 0.05
_FEW_PARTITIONS = 8
_PARSER = RequestParser(ApiVersionManager((ApiKeys.CREATE_TOPICS, ApiKeys.CREATE_PARTITIONS)))
_INTERESTING_INT32 = (-(2**31), -2, -1, 0, 1, 0x7F, 0xFFFF, 2**24, 2**30, 2**31 - 1)


def _compact(value: bytes) -> bytes:
    assert len(value) < 127
    return bytes([len(value) + 1]) + value


def _batch(value: bytes) -> bytes:
    """A magic 2 batch of one record; its CRC is wrong, which any broker has to notice."""
    record = b"\x00\x00\x00\x01" + bytes([len(value) * 2]) + value + b"\x00"
    record = bytes([len(record) * 2]) + record
    body = struct.pack(">hiqqqhii", 0, 0, 0, 0, -1, -1, -1, 1) + record
    tail = struct.pack(">ibI", 0, 2, 0x12345678) + body
    return struct.pack(">qi", 0, len(tail)) + tail


def _admin_seeds(topic: str) -> list[bytes]:
    """Requests that ask whether topics and partitions could be made; damage can make them real."""
    new_topic = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name="mutant",
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    CreateTopicsRequest.CreatableReplicaAssignment(
                        partition_index=index, broker_ids=[0]
                    )
                    for index in range(2)
                ],
                configs=[
                    CreateTopicsRequest.CreatableTopicConfig(name="retention.ms", value="1000")
                ],
            )
        ],
        timeout_ms=100,
        validate_only=True,
    )
    new_partition = CreatePartitionsRequest(
        topics=[
            CreatePartitionsRequest.CreatePartitionsTopic(
                name=topic,
                count=2,
                assignments=[CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=[0])],
            )
        ],
        timeout_ms=100,
        validate_only=True,
    )
    return [
        wire.request(
            request.API_KEY,
            version,
            request.encode(version),
            flexible=version in request.FLEXIBLE_VERSIONS,
        )
        for request, versions in ((new_topic, (1, 4, 7)), (new_partition, (0, 3)))
        for version in versions
    ]


def seeds(topic: str) -> list[bytes]:
    """Requests as sound clients send them, in rigid and in flexible versions."""
    name = _compact(topic.encode())
    v2_records = _batch(b"value")
    rigid_topic = wire.array([wire.string(topic)])
    list_offsets = struct.pack(">i", -1) + wire.array(
        [wire.string(topic) + wire.array([struct.pack(">iq", 0, -1)])]
    )
    epoch_partition = struct.pack(">iii", 0, 0, 0)
    return [
        wire.request(wire.API_VERSIONS, 0),
        wire.request(
            wire.API_VERSIONS, 3, _compact(b"test") + _compact(b"1.0") + b"\x00", flexible=True
        ),
        wire.request(wire.METADATA, 0, rigid_topic),
        wire.request(wire.METADATA, 8, rigid_topic + b"\x00\x00\x00"),
        wire.request(
            wire.METADATA, 12, b"\x02" + bytes(16) + name + b"\x00" + b"\x00\x00\x00", flexible=True
        ),
        wire.produce_request(2, topic, 0, wire.legacy_message(1, b"value")),
        wire.produce_request(7, topic, 0, v2_records),
        wire.request(
            wire.PRODUCE,
            9,
            b"\x00"
            + struct.pack(">hi", -1, 1000)
            + (b"\x02" + name + b"\x02" + bytes(4) + _compact(v2_records) + b"\x00\x00\x00"),
            flexible=True,
        ),
        wire.fetch_request(0, topic, 0),
        wire.fetch_request(3, topic, 0),
        wire.fetch_request(6, topic, 0),
        wire.request(
            wire.FETCH,
            12,
            struct.pack(">iiiibii", -1, 10, 0, 1000, 0, 0, -1)
            + (b"\x02" + name + b"\x02" + struct.pack(">iiqiqi", 0, -1, 0, -1, -1, 1000))
            + b"\x00\x00\x01\x01\x00",
            flexible=True,
        ),
        wire.request(2, 1, list_offsets),
        wire.request(
            23,
            3,
            struct.pack(">i", -1)
            + wire.array([wire.string(topic) + wire.array([epoch_partition])]),
        ),
        wire.request(22, 0, wire.string(None) + struct.pack(">i", 1000)),
        wire.request(
            32, 1, wire.array([b"\x02" + wire.string(topic) + struct.pack(">i", -1)]) + b"\x00"
        ),
        wire.request(60, 0, b"\x00\x00", flexible=True),
        wire.request(35, 1, struct.pack(">i", -1)),
        wire.request(
            21,
            0,
            wire.array([wire.string("no-such-topic") + wire.array([struct.pack(">iq", 0, 0)])])
            + struct.pack(">i", 100),
        ),
        *_admin_seeds(topic),
    ]


def mutated(frames: list[bytes], rng: random.Random) -> Iterator[bytes]:
    """An endless supply of damaged frames, lengths included: what goes on the wire as it is."""
    while True:
        frame = bytearray(wire.framed(rng.choice(frames)))
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            _damage(frame, rng)
        if len(frame) >= 4 and rng.random() < 0.9:
            # With its true length most of the damage reaches the parser behind it.
            struct.pack_into(">i", frame, 0, len(frame) - 4)
        if _new_partitions(bytes(frame)) <= _FEW_PARTITIONS:
            yield bytes(frame)


def _new_partitions(frame: bytes) -> int:
    """How many the request asks for: any broker is kept busy for long by thousands of them."""
    try:
        _, body = _PARSER.parse(bytearray(frame[4:]))
    except InvalidRequestError:
        return 0
    if isinstance(body, CreateTopicsRequest):
        return sum(len(topic.assignments) or topic.num_partitions for topic in body.topics)
    if isinstance(body, CreatePartitionsRequest):
        return sum(topic.count for topic in body.topics)
    return 0


def _damage(frame: bytearray, rng: random.Random) -> None:
    position = rng.randrange(len(frame)) if frame else 0
    match rng.randrange(6):
        case 0 if frame:
            frame[position] ^= 1 << rng.randrange(8)
        case 1 if frame:
            frame[position] = rng.randrange(256)
        case 2 if len(frame) - position >= 4:
            struct.pack_into(">i", frame, position, rng.choice(_INTERESTING_INT32))
        case 3:
            del frame[position:]
        case 4:
            frame[position:position] = rng.randbytes(rng.randrange(1, 40))
        case 5:
            del frame[position : position + rng.randrange(1, 16)]
        case _:
            frame += rng.randbytes(4)


class FrameSender:
    """Sends frames over a few connections at once, and replaces each that the broker closes.

    A frame is done when it is answered, when its connection is closed, or after a short wait.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._selector = selectors.DefaultSelector()
        self._sent_at: dict[socket.socket, float] = {}
        self.closed = 0
        self.answered = 0

    def send(self, frames: Iterator[bytes], count: int) -> None:
        try:
            remaining = count
            while remaining > 0 or self._sent_at:
                while remaining > 0 and len(self._sent_at) < _CONNECTIONS:
                    self._send_on(self._connect(), next(frames))
                    remaining -= 1
                for key, _ in self._selector.select(_PATIENCE_S):
                    sock = key.fileobj
                    assert isinstance(sock, socket.socket)
                    if self._still_open(sock) and remaining > 0:
                        self._send_on(sock, next(frames))
                        remaining -= 1
                    else:
                        self._drop(sock)
                self._drop_the_silent()
        finally:
            for sock in list(self._sent_at):
                self._drop(sock)
            self._selector.close()

    def _connect(self) -> socket.socket:
        sock = socket.create_connection(self._address, timeout=10)
        self._selector.register(sock, selectors.EVENT_READ)
        return sock

    def _send_on(self, sock: socket.socket, frame: bytes) -> None:
        self._sent_at[sock] = time.monotonic()
        try:
            sock.sendall(frame)
        except ConnectionError:
            self.closed += 1
            self._drop(sock)

    def _still_open(self, sock: socket.socket) -> bool:
        try:
            is_open = sock.recv(65536) != b""
        except ConnectionError:
            is_open = False
        if is_open:
            self.answered += 1
        else:
            self.closed += 1
        return is_open

    def _drop_the_silent(self) -> None:
        limit = time.monotonic() - _PATIENCE_S
        for sock in [s for s, sent_at in self._sent_at.items() if sent_at < limit]:
            self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        del self._sent_at[sock]
        sock.close()
