"""Hostile clients cost themselves, not the broker's memory and not the other clients."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.record.memory_records import MemoryRecords
from tests.faults.bombs import gzip_bomb, legacy_gzip_bomb, lz4_bomb, snappy_bomb, zstd_bomb
from tests.faults.hostile_clients import Crowd, canary, pipelined
from tests.helpers.api import (
    LATEST,
    create_topic,
    fetch_request,
    fetch_topic,
    list_offset,
    produce,
    produced,
)
from tests.helpers.records import records
from tests.helpers.server_process import ServerProcess, running_server
from tests.helpers.waiting import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

_CROWD = 1000
_IDLE_MS = 4000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    work_dir = tmp_path_factory.mktemp("hostile")
    properties = {"connections.max.idle.ms": str(_IDLE_MS)}
    with running_server(work_dir / "logs", work_dir / "output", properties) as server:
        with canary(server.address):
            pass  # what is loaded with the first request is not held against a later one
        yield server
        assert server.stop() == 0, server.output()


@pytest.mark.parametrize(
    ("bomb", "mebibytes", "version"),
    [
        pytest.param(gzip_bomb, 960, None, id="gzip"),
        pytest.param(lz4_bomb, 240, None, id="lz4"),
        pytest.param(zstd_bomb, 1024, None, id="zstd"),
        pytest.param(legacy_gzip_bomb, 960, 2, id="gzip of an old client"),
    ],
)
def test_decompression_bomb_is_refused_in_bounded_memory(
    server: ServerProcess,
    bomb: Callable[[int], MemoryRecords],
    mebibytes: int,
    version: int | None,
) -> None:
    batch = bomb(mebibytes)
    assert batch.size_in_bytes < 1 << 20
    with server.client() as client:
        topic = create_topic(client)
        before = server.memory_mb()
        server.reset_peak_memory()

        with canary(server.address):
            result = produce(client, topic, batch, version=version)

        peak = server.memory_mb("VmHWM")
        end = list_offset(client, topic, LATEST).offset
    assert result.error_code == Errors.MESSAGE_TOO_LARGE.code
    assert end == 0
    assert peak - before < 128


def test_what_a_codec_can_hold_at_most_is_accepted(server: ServerProcess) -> None:
    with server.client() as client:
        topic = create_topic(client)
        server.reset_peak_memory()
        before = server.memory_mb()

        offset = produced(client, topic, snappy_bomb(20))
        peak = server.memory_mb("VmHWM")

    assert offset == 0
    assert peak - before < 128


def test_idle_half_open_and_slow_connections_disturb_nobody(server: ServerProcess) -> None:
    before = server.memory_mb()
    with canary(server.address) as bird, Crowd(server.address) as crowd:
        idle = crowd.connect(_CROWD)
        half_open = crowd.connect(_CROWD, b"\x00\x00")
        slow = crowd.connect_slowly_sending(_CROWD)
        for _ in range(3):
            assert crowd.trickle(slow) == _CROWD
            bird.await_rounds(5)
        grown = server.memory_mb() - before
        # Closed for having been silent too long, while the slow ones go on.
        wait_until(
            lambda: (
                crowd.trickle(slow) == _CROWD
                and crowd.closed_by_peer(idle) == crowd.closed_by_peer(half_open) == _CROWD
            ),
            timeout=_IDLE_MS / 1000 * 3,
            pause=0.5,
        )
    assert grown < 64


def test_unread_answers_are_not_heaped_up(server: ServerProcess) -> None:
    with server.client() as client:
        topic = create_topic(client)
        for _ in range(4):
            produced(client, topic, records(b"x" * 900_000))
    request = fetch_request(
        fetch_topic(topic, {0: 0}, max_bytes=4 << 20), max_bytes=4 << 20, min_bytes=0
    )
    before = server.memory_mb()
    with canary(server.address) as bird, Crowd(server.address) as crowd:
        crowd.connect(200, pipelined(request, 12, 50))
        bird.await_rounds(100)
        grown = server.memory_mb() - before
    assert grown < 64


def test_request_memory_is_bounded_and_nothing_is_lost(tmp_path: Path) -> None:
    bound_mb = 32
    producers, batches = 60, 2
    properties = {"queued.max.request.bytes": str(bound_mb << 20)}
    batch = records(b"x" * 1_000_000)
    failures: list[BaseException] = []

    def run(server: ServerProcess, topic: str) -> None:
        try:
            with server.client() as client:
                for _ in range(batches):
                    produced(client, topic, batch)
        except BaseException as e:
            failures.append(e)

    with (
        running_server(tmp_path / "logs", tmp_path / "output", properties) as server,
        server.client() as client,
    ):
        topic = create_topic(client)
        produced(client, topic, records("first"))
        before = server.memory_mb()
        server.reset_peak_memory()
        threads = [threading.Thread(target=run, args=(server, topic)) for _ in range(producers)]
        with canary(server.address):
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        peak = server.memory_mb("VmHWM")
        end = list_offset(client, topic, LATEST).offset

    assert failures == []
    assert end == 1 + producers * batches
    assert peak - before < 2 * bound_mb


def test_clients_that_hang_up_while_they_wait_leave_nothing_behind(server: ServerProcess) -> None:
    with server.client() as client:
        topic = create_topic(client)
        produced(client, topic, records(b"x" * 900_000))
    before = server.open_sockets()
    request = fetch_request(fetch_topic(topic, {0: 0}), min_bytes=10**8, max_wait_ms=500)

    with canary(server.address):
        for linger in (False, True):
            with Crowd(server.address) as crowd:
                for sock in crowd.connect(300, pipelined(request, 12, 3)):
                    if linger:  # a reset instead of a polite end
                        sock.setsockopt(
                            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00"
                        )

    wait_until(lambda: server.open_sockets() <= before)
