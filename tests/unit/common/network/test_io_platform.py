import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.network.io_platform import NATIVE, PORTABLE, READ, WRITE, IoPlatform

PLATFORMS = pytest.mark.parametrize("platform", [NATIVE, PORTABLE], ids=["native", "portable"])


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    yield left, right
    left.close()
    right.close()


@PLATFORMS
def test_poller_reports_what_is_ready_and_asked_for(
    platform: IoPlatform, pair: tuple[socket.socket, socket.socket]
) -> None:
    left, right = pair
    poller = platform.new_poller()
    poller.register(left.fileno(), READ)

    assert poller.poll(0) == []
    right.send(b"x")
    assert poller.poll(0) == [(left.fileno(), READ)]
    poller.modify(left.fileno(), READ | WRITE)
    assert poller.poll(0) == [(left.fileno(), READ | WRITE)]
    poller.modify(left.fileno(), WRITE)
    assert poller.poll(0) == [(left.fileno(), WRITE)]
    poller.unregister(left.fileno())
    assert poller.poll(0) == []
    poller.close()


@PLATFORMS
def test_waker_ends_a_poll_once(platform: IoPlatform) -> None:
    poller, waker = platform.new_poller(), platform.new_waker()
    waker.register_with(poller)

    assert poller.poll(0) == []
    waker.wake()
    waker.wake()
    assert poller.poll(10) == [(waker.fileno(), READ)]
    waker.drain()
    assert poller.poll(0) == []
    waker.wake()
    assert poller.poll(10) == [(waker.fileno(), READ)]
    waker.close()
    poller.close()


@PLATFORMS
def test_waking_after_close_does_nothing(platform: IoPlatform) -> None:
    waker = platform.new_waker()
    waker.close()

    waker.wake()
    waker.close()


@PLATFORMS
def test_file_is_sent_from_any_offset_and_ends_with_zero(
    platform: IoPlatform, pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    left, right = pair
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    fd = os.open(path, os.O_RDONLY)

    assert platform.send_file(left, fd, 3, 4) == 4
    assert right.recv(100) == b"3456"
    assert platform.send_file(left, fd, 8, 100) == 2
    assert right.recv(100) == b"89"
    assert platform.send_file(left, fd, 10, 5) == 0
    os.close(fd)


@PLATFORMS
def test_sending_a_file_to_a_full_connection_would_block(
    platform: IoPlatform, pair: tuple[socket.socket, socket.socket], tmp_path: Path
) -> None:
    left, _ = pair
    path = tmp_path / "file"
    path.write_bytes(bytes(4 * 1024 * 1024))
    fd = os.open(path, os.O_RDONLY)

    with pytest.raises(BlockingIOError):
        for _ in range(100):
            platform.send_file(left, fd, 0, 4 * 1024 * 1024)
    os.close(fd)
