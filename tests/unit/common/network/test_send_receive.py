import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.network.send_receive import (
    SCRATCH_BYTES,
    InvalidReceiveError,
    NetworkReceive,
    NetworkSend,
)
from tests.helpers.in_memory_transport import InMemoryTransport

MAX_SIZE = 1_000_000


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def transport_with(data: bytes, **options: Any) -> InMemoryTransport:
    transport = InMemoryTransport(**options)
    transport.incoming += data
    return transport


def read_all(receive: NetworkReceive, transport: InMemoryTransport) -> list[bytes]:
    """Every frame that can be read without waiting."""
    scratch = bytearray(SCRATCH_BYTES)
    frames = []
    while True:
        before = len(transport.incoming)
        payload = receive.read_from(transport, scratch)
        if payload is not None:
            frames.append(bytes(payload))
        elif before == len(transport.incoming):
            return frames


class TestNetworkReceive:
    @pytest.mark.parametrize("size", [0, 1, 100, SCRATCH_BYTES - 4, SCRATCH_BYTES, 300_000])
    @pytest.mark.parametrize("max_bytes_per_call", [1 << 30, 70_000])
    def test_frame_comes_out_as_it_was_sent(self, size: int, max_bytes_per_call: int) -> None:
        payload = os.urandom(size)
        transport = transport_with(frame(payload), max_bytes_per_call=max_bytes_per_call)

        assert read_all(NetworkReceive(MAX_SIZE), transport) == [payload]

    @settings(max_examples=40, deadline=None, derandomize=True)
    @given(
        payloads=st.lists(
            st.binary(max_size=40) | st.integers(17_000, 20_000).map(bytes), max_size=8
        ),
        cuts=st.lists(st.integers(1, 9_000), min_size=3, max_size=9).filter(lambda c: sum(c) > 900),
        pooled=st.booleans(),
    )
    def test_frames_come_out_however_the_bytes_arrive(
        self, payloads: list[bytes], cuts: list[int], pooled: bool
    ) -> None:
        data = b"".join(map(frame, payloads))
        pool = MemoryPool(1 << 30) if pooled else None
        receive = NetworkReceive(MAX_SIZE, pool)
        transport = InMemoryTransport()
        received = []

        while data:
            cut = cuts[len(data) % len(cuts)]
            transport.incoming += data[:cut]
            data = data[cut:]
            received += read_all(receive, transport)

        assert received == payloads

    @pytest.mark.parametrize("step", [50_003, 50_004, 50_005, 50_008, 50_009, 29_000, 1_000_000])
    def test_large_frames_of_one_size_and_others_between_them_come_out(self, step: int) -> None:
        payloads = [
            os.urandom(size) for size in (50_000, 50_000, 50_000, 9, 50_000, 50_000, 60_000)
        ]
        data = b"".join(map(frame, payloads))
        receive = NetworkReceive(MAX_SIZE)
        transport = InMemoryTransport()
        received = []

        for start in range(0, len(data), step):
            transport.incoming += data[start : start + step]
            received += read_all(receive, transport)

        assert received == payloads

    def test_large_frame_like_the_last_is_read_at_once(self) -> None:
        payload = os.urandom(100_000)
        transport = transport_with(frame(payload))
        receive = NetworkReceive(MAX_SIZE)
        read_all(receive, transport)

        transport.incoming += frame(payload)
        received = receive.read_from(transport, bytearray(SCRATCH_BYTES))

        assert received == payload
        assert transport.largest_recv == len(frame(payload))

    def test_payload_is_writable_and_its_own(self) -> None:
        transport = transport_with(frame(b"first") + frame(b"second"))
        receive = NetworkReceive(MAX_SIZE)
        scratch = bytearray(SCRATCH_BYTES)

        first = receive.read_from(transport, scratch)
        second = receive.read_from(transport, scratch)

        assert first is not None
        first[0:1] = b"F"
        assert (first, second) == (b"First", b"second")

    def test_frames_read_ahead_are_known(self) -> None:
        transport = transport_with(frame(b"first") + frame(b"second"))
        receive = NetworkReceive(MAX_SIZE)

        receive.read_from(transport, bytearray(SCRATCH_BYTES))
        assert receive.has_buffered
        receive.read_from(transport, bytearray(SCRATCH_BYTES))
        assert not receive.has_buffered

    @pytest.mark.parametrize("size", [-1, -(2**31), MAX_SIZE + 1, 2**31 - 1])
    @pytest.mark.parametrize("before", [b"", frame(b"good")])
    def test_unacceptable_size_is_refused(self, size: int, before: bytes) -> None:
        transport = transport_with(before + struct.pack(">i", size) + b"whatever")

        with pytest.raises(InvalidReceiveError, match=str(size)):
            read_all(NetworkReceive(MAX_SIZE), transport)

    def test_largest_size_is_accepted(self) -> None:
        transport = transport_with(frame(bytes(MAX_SIZE)))

        assert read_all(NetworkReceive(MAX_SIZE), transport) == [bytes(MAX_SIZE)]

    def test_announced_size_is_allocated_only_as_bytes_come(self) -> None:
        receive = NetworkReceive(100 * 1024 * 1024)
        transport = transport_with(struct.pack(">i", 100 * 1024 * 1024))

        received = 0
        for count in (0, 1, 10, 1000, 100_000):
            transport.incoming += bytes(count)
            received += count
            transport.largest_recv = 0
            read_all(receive, transport)
            assert transport.largest_recv <= max(SCRATCH_BYTES, 8 * received)

    def test_end_of_stream_raises(self) -> None:
        transport = InMemoryTransport()
        transport.peer_has_closed = True

        with pytest.raises(EOFError):
            read_all(NetworkReceive(MAX_SIZE), transport)

    def test_end_of_stream_in_the_middle_of_a_frame_raises(self) -> None:
        transport = transport_with(struct.pack(">i", 1000) + b"half")
        transport.peer_has_closed = True

        with pytest.raises(EOFError, match="middle"):
            read_all(NetworkReceive(MAX_SIZE), transport)

    def test_frame_waits_for_memory(self) -> None:
        pool = MemoryPool(10)
        pool.try_allocate(10, lambda: None)
        available = []
        receive = NetworkReceive(MAX_SIZE, pool, lambda: available.append(True))
        transport = transport_with(frame(b"payload"))

        assert read_all(receive, transport) == []
        assert receive.is_waiting_for_memory
        pool.release(10)
        assert available == [True]
        assert read_all(receive, transport) == [b"payload"]
        assert not receive.is_waiting_for_memory
        assert pool.available_bytes == 3

    def test_closing_in_the_middle_of_a_frame_gives_its_memory_back(self) -> None:
        pool = MemoryPool(1000)
        receive = NetworkReceive(MAX_SIZE, pool)
        read_all(receive, transport_with(struct.pack(">i", 600) + b"half"))
        assert pool.available_bytes == 400

        receive.close()
        receive.close()

        assert pool.available_bytes == 1000


@dataclass
class Slice:
    fd: int
    position: int
    size_in_bytes: int

    def fileno(self) -> int:
        return self.fd


@pytest.fixture
def file_slice(tmp_path: Path) -> Any:
    path = tmp_path / "segment"
    path.write_bytes(bytes(range(256)) * 40)
    fd = os.open(path, os.O_RDWR)
    yield lambda position, size: Slice(fd, position, size)
    os.close(fd)


def drain(send: NetworkSend, transport: InMemoryTransport, *, room: int) -> int:
    """How many writes it takes when the connection has room for so many bytes at a time."""
    writes = 1
    transport.send_room = room
    while not send.write_to(transport):
        transport.send_room = room
        writes += 1
        assert writes < 100_000
    return writes


class TestNetworkSend:
    def test_single_buffer_is_one_send(self) -> None:
        transport = InMemoryTransport()
        send = NetworkSend([b"response"], 8)

        assert send.write_to(transport)

        assert transport.outgoing == b"response"
        assert transport.calls == ["send"]
        assert send.completed

    def test_small_buffers_are_gathered(self) -> None:
        transport = InMemoryTransport()
        parts = [b"a", bytearray(b"bc"), b"", memoryview(b"def")]

        assert NetworkSend(parts, 6).write_to(transport)

        assert transport.outgoing == b"abcdef"
        assert transport.calls == ["sendmsg"]

    @pytest.mark.parametrize("room", [1, 3, 7, 1000, 100_000])
    def test_partial_writes_are_continued(self, file_slice: Any, room: int) -> None:
        transport = InMemoryTransport()
        parts = [b"head", b"er", file_slice(10, 500), b"", b"middle", file_slice(0, 256), b"end"]
        expected = b"header" + (bytes(range(256)) * 2)[10:266] + (bytes(range(256)) * 2)[10:254]
        expected += b"middle" + bytes(range(256)) + b"end"

        drain(NetworkSend(parts, len(expected)), transport, room=room)

        assert bytes(transport.outgoing) == expected

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(parts=st.lists(st.binary(max_size=50)), room=st.integers(1, 60))
    def test_any_buffers_arrive_whole(self, parts: list[bytes], room: int) -> None:
        transport = InMemoryTransport()

        drain(NetworkSend(parts, sum(map(len, parts))), transport, room=room)

        assert bytes(transport.outgoing) == b"".join(parts)

    def test_empty_file_slice_is_skipped(self, file_slice: Any) -> None:
        transport = InMemoryTransport()

        assert NetworkSend([b"a", file_slice(0, 0), b"b"], 2).write_to(transport)

        assert transport.outgoing == b"ab"

    def test_file_cut_short_raises_instead_of_spinning(self, file_slice: Any) -> None:
        transport = InMemoryTransport(send_room=100)
        part = file_slice(0, 10_000)
        send = NetworkSend([b"head", part], 10_004)
        assert not send.write_to(transport)

        os.ftruncate(part.fd, 50)
        transport.send_room = 100_000

        with pytest.raises(EOFError, match="lost"):
            send.write_to(transport)

    def test_one_connection_does_not_send_for_ever(self) -> None:
        transport = InMemoryTransport()
        parts = [bytes(600_000) for _ in range(40)]
        send = NetworkSend(parts, 24_000_000)

        transport.max_bytes_per_call = 200_000
        assert not send.write_to(transport)

        assert 1_000_000 <= len(transport.outgoing) <= 1_500_000
