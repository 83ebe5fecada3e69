"""Input no sound client sends: the connection is closed, the broker and its threads stay."""

import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat import wire
from tests.compat.brokers import Broker, start_broker
from tests.compat.cases import assert_received, numbered
from tests.compat.confluent_client import ConfluentAdmin, ConfluentClient
from tests.compat.contract import LATEST
from tests.compat.mutation import FrameSender, mutated, seeds

_UNSUPPORTED_VERSION = 35
_MUTATED_FRAMES = 50_000
_MEGABYTE_IN_KIB = 1024
_TOPIC = "canary"


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of its own, since damaged requests must not be able to create topics in it."""
    overrides = {"auto.create.topics.enable": "false", "delete.topic.enable": "false"}
    started = start_broker(tmp_path_factory.mktemp("target"), overrides=overrides)
    try:
        admin = ConfluentAdmin(started.bootstrap)
        admin.create_topic(_TOPIC, 1, {})
        yield started
        sent = numbered(100)
        client = ConfluentClient(started.bootstrap)
        latest = admin.offset_for(_TOPIC, 0, LATEST)
        client.produce(_TOPIC, sent)
        assert_received(client.consume(_TOPIC, 0, 100, offset=latest), sent)
    finally:
        code = started.stop()
    assert code == started.clean_exit_code, started.tail()


@pytest.fixture(autouse=True)
def canary(target: Broker) -> Iterator[None]:
    """After every test a sound request still gets through, and no thread of the broker is gone."""
    threads_before = _thread_count(target)
    yield
    message = wire.legacy_message(1, b"canary")
    with wire.Connection(target.address) as connection:
        produced = connection.ask(wire.produce_request(2, _TOPIC, 0, message))
        error, offset = wire.read_produce(produced)
        fetched = connection.ask(wire.fetch_request(2, _TOPIC, 0, offset))
        _, _, records = wire.read_fetch(fetched, 2)
    assert error == 0
    assert [m.value for m in wire.legacy_messages(records)] == [b"canary"]
    # A JVM ends threads of its own accord.
    assert target.is_apache or _thread_count(target) >= threads_before


def _status(broker: Broker, field: str) -> int | None:
    """A number of /proc/<pid>/status; None where there is no such file."""
    status = Path(f"/proc/{broker.pid}/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines[field].split()[0])


def _thread_count(broker: Broker) -> int:
    return _status(broker, "Threads") or 0


def _resident_kib(broker: Broker) -> int:
    resident = _status(broker, "VmRSS")
    if resident is None:
        pytest.skip("memory is read from /proc, which only Linux has")
    return resident


def test_every_unknown_api_versions_version_is_answered_in_version_zero(target: Broker) -> None:
    versions = [*range(5, 32768), -1]

    with wire.Connection(target.address) as connection:
        for chunk in (versions[i : i + 200] for i in range(0, len(versions), 200)):
            requests = [
                wire.request(
                    wire.API_VERSIONS, version, correlation_id=version, flexible=version >= 3
                )
                for version in chunk
            ]
            connection.socket.sendall(b"".join(map(wire.framed, requests)))
            for version in chunk:
                answer = connection.receive()
                # Correlation id, error, one entry: ApiVersions itself, versions 0 to 4.
                assert answer == struct.pack(
                    ">ihihhh", version, _UNSUPPORTED_VERSION, 1, wire.API_VERSIONS, 0, 4
                )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_connection_goes_on_after_a_refused_version(target: Broker, version: int) -> None:
    with wire.Connection(target.address) as connection:
        connection.ask(wire.request(wire.API_VERSIONS, 9, flexible=True))
        answer = connection.ask(wire.request(wire.API_VERSIONS, version))

    assert answer.number("h") == 0
    ranges = {
        key: (low, high)
        for key, low, high in (answer.unpack("hhh") for _ in range(answer.number("i")))
    }
    assert ranges[wire.API_VERSIONS] == (0, 4)
    assert ranges[wire.PRODUCE] == (0, 11)
    assert ranges[wire.FETCH] == (0, 17)


@pytest.mark.parametrize("api_key", [-1, -32768, 93, 999, 32767])
def test_unknown_api_key_closes_the_connection(target: Broker, api_key: int) -> None:
    with wire.Connection(target.address) as connection:
        connection.send(wire.request(api_key, 0))

        assert connection.is_closed_by_peer()


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(wire.PRODUCE, 12), (wire.PRODUCE, -1), (wire.FETCH, 99), (wire.METADATA, 32767), (19, -5)],
)
def test_unknown_version_closes_the_connection(target: Broker, api_key: int, version: int) -> None:
    with wire.Connection(target.address) as connection:
        connection.send(wire.request(api_key, version, flexible=version > 8))

        assert connection.is_closed_by_peer()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(struct.pack(">i", -1), id="negative size"),
        pytest.param(struct.pack(">i", -(2**31)), id="smallest size"),
        pytest.param(struct.pack(">i", 104857601), id="over the limit"),
        pytest.param(struct.pack(">i", 2**31 - 1), id="greatest size"),
        pytest.param(struct.pack(">i", 0), id="no bytes"),
        pytest.param(wire.framed(b"\x00"), id="one byte"),
        pytest.param(wire.framed(struct.pack(">hh", 18, 0)), id="half a header"),
        pytest.param(wire.framed(struct.pack(">hhih", 18, 0, 1, 500)), id="client id cut"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), id="TLS"),
    ],
)
def test_frame_of_a_wrong_size_closes_the_connection(target: Broker, sent: bytes) -> None:
    with wire.Connection(target.address) as connection:
        connection.socket.sendall(sent)

        assert connection.is_closed_by_peer()


@pytest.mark.parametrize(
    ("api_key", "version", "body"),
    [
        pytest.param(3, 1, struct.pack(">i", 2**31 - 1), id="greatest array"),
        pytest.param(3, 1, struct.pack(">i", 100_000_000), id="huge array"),
        pytest.param(3, 1, struct.pack(">ih", 1, -1), id="null name"),
        pytest.param(3, 1, struct.pack(">ih", 1, -2), id="name of -2"),
        pytest.param(3, 1, struct.pack(">ih", 1, 32767) + b"cut", id="name past the end"),
        pytest.param(3, 9, b"\xff\xff\xff\xff\x0f", id="greatest compact array"),
        pytest.param(3, 9, b"\xff" * 11, id="endless varint"),
        pytest.param(3, 9, b"\x02\xff\xff\xff\xff\x07", id="huge compact name"),
        pytest.param(0, 3, struct.pack(">hhii", -1, -1, 1000, 2**31 - 1), id="produce topics"),
        pytest.param(1, 4, struct.pack(">iiiibi", -1, 0, 0, 0, 0, 2**30), id="fetch topics"),
        pytest.param(2, 1, struct.pack(">ii", -1, -7), id="list offsets topics"),
    ],
)
def test_body_that_does_not_parse_closes_the_connection(
    target: Broker, api_key: int, version: int, body: bytes
) -> None:
    with wire.Connection(target.address) as connection:
        connection.send(wire.request(api_key, version, body, flexible=version >= 9))

        assert connection.is_closed_by_peer()


def test_garbage_closes_the_connection(target: Broker) -> None:
    rng = random.Random(2)

    for size in (1, 7, 64, 1000, 100_000):
        with wire.Connection(target.address) as connection:
            connection.send(struct.pack(">h", 20_000) + rng.randbytes(size))

            assert connection.is_closed_by_peer()


def test_half_a_frame_and_a_hang_up_is_forgotten(target: Broker) -> None:
    for cut in (1, 3, 4, 10):
        with wire.Connection(target.address) as connection:
            connection.socket.sendall(wire.framed(wire.request(wire.API_VERSIONS, 0))[:cut])


def test_bad_request_is_one_line_in_the_log(target: Broker) -> None:
    if target.output is None or target.is_apache:
        pytest.skip("about our own log")
    time.sleep(1.1)  # the lines of one second are limited, and others may have used them up

    with wire.Connection(target.address) as connection:
        port = connection.socket.getsockname()[1]
        connection.send(wire.request(3, 1, struct.pack(">i", 2**31 - 1)))
        assert connection.is_closed_by_peer()

    written = [line for line in target.output.read_text().splitlines() if f":{port}" in line]
    assert len(written) == 1, written


def test_announced_bytes_that_never_come_take_no_memory(target: Broker) -> None:
    if target.is_apache:
        pytest.skip("Apache Kafka allocates what is announced")
    before = _resident_kib(target)
    announced = struct.pack(">i", 100 * 1024 * 1024) + b"\x00" * 100

    connections = [wire.Connection(target.address) for _ in range(300)]
    try:
        for connection in connections:
            connection.socket.sendall(announced)
        with wire.Connection(target.address) as canary:
            assert canary.ask(wire.request(wire.API_VERSIONS, 0)).number("h") == 0
        grown = _resident_kib(target) - before
    finally:
        for connection in connections:
            connection.socket.close()

    assert grown < 64 * _MEGABYTE_IN_KIB


def test_mutated_frames_leave_the_broker_well(target: Broker) -> None:
    rng = random.Random(3)
    before = _status(target, "VmRSS")

    sender = FrameSender(target.address)
    sender.send(mutated(seeds(_TOPIC), rng), _MUTATED_FRAMES)

    assert sender.answered > _MUTATED_FRAMES // 20
    assert sender.closed > _MUTATED_FRAMES // 20
    if before is not None and not target.is_apache:
        assert _resident_kib(target) - before < 50 * _MEGABYTE_IN_KIB
