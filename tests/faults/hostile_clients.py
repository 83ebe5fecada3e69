"""Clients that mean harm, and one that must not notice."""

import contextlib
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.schema import Message
from tests.helpers.api import create_topic, fetch, fetched_values, produced
from tests.helpers.broker import Client
from tests.helpers.records import records
from tests.helpers.waiting import wait_until

_TRICKLE = struct.pack(">i", 1_000_000)


class Canary:
    """Produces and fetches all the time in a thread of its own, and keeps what goes wrong."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="canary")
        self.rounds = 0
        self.slowest_s = 0.0
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def await_rounds(self, count: int) -> None:
        """Until it has been served so many times more."""
        goal = self.rounds + count
        wait_until(
            lambda: self.rounds >= goal or self.failure is not None,
            message=f"the canary has fallen silent after {self.rounds} rounds",
        )

    def stop(self) -> None:
        """Raises what has gone wrong."""
        self._stopping.set()
        self._thread.join()
        if self.failure is not None:
            raise AssertionError("the canary was not served") from self.failure

    def _run(self) -> None:
        try:
            with Client(self._address, client_id="canary") as client:
                # Its records are years old.
                topic = create_topic(client, configs={"retention.ms": "-1"})
                while not self._stopping.is_set():
                    begun = time.monotonic()
                    offset = produced(client, topic, records("sing"))
                    assert fetched_values(fetch(client, topic, offset)) == [b"sing"]
                    self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
                    self.rounds += 1
        except BaseException as e:
            self.failure = e


@contextlib.contextmanager
def canary(address: tuple[str, int]) -> Iterator[Canary]:
    """One that sings from beginning to end, and has sung at least once after the end."""
    bird = Canary(address)
    bird.start()
    try:
        yield bird
        bird.await_rounds(1)
    finally:
        bird.stop()


class Crowd:
    """Many connections at once."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> "Crowd":
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self.sockets:
            sock.close()

    def connect(self, count: int, say: bytes = b"") -> list[socket.socket]:
        """New connections, each of which says something and then waits."""
        allow_open_files(len(self.sockets) + count + 200)
        new = []
        for _ in range(count):
            sock = socket.create_connection(self._address, timeout=20)
            self.sockets.append(sock)
            new.append(sock)
            if say:
                sock.sendall(say)
        return new

    def connect_slowly_sending(self, count: int) -> list[socket.socket]:
        """Connections that announce a request and then send it byte by byte (see `trickle`)."""
        return self.connect(count, _TRICKLE)

    @staticmethod
    def trickle(sockets: list[socket.socket]) -> int:
        """One more byte from each; how many of them are still open."""
        still_open = 0
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.send(b"\x00")
                still_open += 1
        return still_open

    @staticmethod
    def closed_by_peer(sockets: list[socket.socket]) -> int:
        closed = 0
        for sock in sockets:
            sock.setblocking(False)
            try:
                closed += sock.recv(1) == b""
            except BlockingIOError:
                continue
            except OSError:
                closed += 1
        return closed


def pipelined(message: Message, version: int, count: int) -> bytes:
    """The same request again and again, as one client sends it."""
    api_key = message.API_KEY
    assert isinstance(api_key, ApiKeys)
    frames = bytearray()
    body = message.encode(version)
    for correlation_id in range(count):
        header = RequestHeader(
            api_key=api_key,
            api_version=version,
            correlation_id=correlation_id,
            client_id="greedy",
        ).to_bytes()
        frames += struct.pack(">i", len(header) + len(body)) + header + body
    return bytes(frames)


def allow_open_files(count: int) -> None:
    """Raises this process's own limit where that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
