"""Magic 0 and 1 message sets, written by hand: what clients before 0.11 send and want back."""

import gzip
import struct

import pytest

from tests.compat import wire
from tests.compat.brokers import Broker
from tests.compat.cases import BASE_TIMESTAMP_MS, Message
from tests.compat.confluent_client import ConfluentClient
from tests.compat.contract import MakeTopic

_VALUES = [b"first", None, b"third" * 100]
_MAGIC_OF_PRODUCE = {0: 0, 1: 0, 2: 1}


def _message_set(magic: int, *, compressed: bool) -> bytes:
    inner = b"".join(
        wire.legacy_message(
            magic, value, key=b"k%d" % i, offset=i, timestamp_ms=BASE_TIMESTAMP_MS + i
        )
        for i, value in enumerate(_VALUES)
    )
    if not compressed:
        return inner
    return wire.legacy_message(
        magic,
        gzip.compress(inner),
        offset=len(_VALUES) - 1,
        timestamp_ms=BASE_TIMESTAMP_MS + len(_VALUES) - 1,
        attributes=1,
    )


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_message_set_is_read_by_a_new_client(
    broker: Broker, make_topic: MakeTopic, version: int, compressed: bool
) -> None:
    topic = make_topic()
    magic = _MAGIC_OF_PRODUCE[version]
    records = _message_set(magic, compressed=compressed)

    with wire.Connection(broker.address) as connection:
        answer = connection.ask(wire.produce_request(version, topic, 0, records))

    assert wire.read_produce(answer) == (0, 0)
    got = ConfluentClient(broker.bootstrap).consume(topic, 0, len(_VALUES))
    assert [(m.key, m.value) for m in got] == [
        (b"k%d" % i, value) for i, value in enumerate(_VALUES)
    ]
    if magic == 1:
        assert [m.timestamp_ms for m in got] == [BASE_TIMESTAMP_MS + i for i in range(len(got))]


@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1), (3, 1)])
def test_new_batch_is_converted_down_for_an_old_fetch(
    broker: Broker, make_topic: MakeTopic, version: int, magic: int
) -> None:
    topic = make_topic()
    sent = [
        Message(b"value %d" % i, b"key %d" % i, (("h", b"lost"),), BASE_TIMESTAMP_MS + i)
        for i in range(5)
    ]
    ConfluentClient(broker.bootstrap).produce(topic, sent)

    with wire.Connection(broker.address) as connection:
        answer = connection.ask(wire.fetch_request(version, topic, 0))
    error, high_watermark, records = wire.read_fetch(answer, version)

    got = wire.legacy_messages(records)
    stamps = [BASE_TIMESTAMP_MS + i if magic == 1 else None for i in range(5)]
    assert (error, high_watermark) == (0, 5)
    assert [(m.magic, m.offset, m.key, m.value) for m in got] == [
        (magic, i, b"key %d" % i, b"value %d" % i) for i in range(5)
    ]
    assert [m.timestamp_ms for m in got] == stamps


def test_compressed_batch_stays_compressed_when_converted_down(
    broker: Broker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    sent = [Message(b"again and again " * 20, b"key-%d" % i) for i in range(20)]
    ConfluentClient(broker.bootstrap).produce(topic, sent, codec="gzip")

    with wire.Connection(broker.address) as connection:
        answer = connection.ask(wire.fetch_request(2, topic, 0))
    _, _, records = wire.read_fetch(answer, 2)

    wrappers = wire.legacy_messages(records)
    assert {m.attributes & 0x07 for m in wrappers} == {1}
    inner = [
        m.value for w in wrappers for m in wire.legacy_messages(gzip.decompress(w.value or b""))
    ]
    assert inner == [m.value for m in sent]


def test_fetch_limit_of_old_versions_may_cut_the_only_message(
    broker: Broker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    ConfluentClient(broker.bootstrap).produce(topic, [Message(b"x" * 10_000)])

    with wire.Connection(broker.address) as connection:
        hard = connection.ask(wire.fetch_request(2, topic, 0, max_bytes=500))
        soft = connection.ask(wire.fetch_request(3, topic, 0, max_bytes=500))

    assert len(wire.read_fetch(hard, 2)[2]) <= 500
    assert [m.value for m in wire.legacy_messages(wire.read_fetch(soft, 3)[2])] == [b"x" * 10_000]


def test_corrupt_old_message_is_refused(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    damaged = bytearray(wire.legacy_message(1, b"value", timestamp_ms=BASE_TIMESTAMP_MS))
    damaged[-1] ^= 0xFF

    with wire.Connection(broker.address) as connection:
        answer = connection.ask(wire.produce_request(2, topic, 0, bytes(damaged)))

    assert wire.read_produce(answer)[0] == 2
    assert wire.stored_batches(broker.address, topic) == []


@pytest.mark.parametrize("acks", [2, -2, 5])
def test_other_acks_are_refused(broker: Broker, make_topic: MakeTopic, acks: int) -> None:
    topic = make_topic()
    records = wire.legacy_message(1, b"value", timestamp_ms=BASE_TIMESTAMP_MS)

    with wire.Connection(broker.address) as connection:
        answer = connection.ask(wire.produce_request(2, topic, 0, records, acks=acks))

    assert wire.read_produce(answer)[0] == 21


def test_failure_under_acks_zero_closes_the_connection(broker: Broker, topic_name: str) -> None:
    records = wire.legacy_message(1, b"value", timestamp_ms=BASE_TIMESTAMP_MS)

    with wire.Connection(broker.address) as connection:
        connection.send(wire.produce_request(2, topic_name, 0, records, acks=0))

        assert connection.is_closed_by_peer()


def test_pipelined_requests_are_answered_in_order(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    requests = []
    for number in range(20):
        payload = bytearray(
            wire.produce_request(2, topic, 0, wire.legacy_message(1, b"%d" % number))
        )
        struct.pack_into(">i", payload, 4, number)
        requests.append(wire.framed(bytes(payload)))

    with wire.Connection(broker.address) as connection:
        connection.socket.sendall(b"".join(requests))
        answers = [wire.Reader(connection.receive() or b"") for _ in requests]

    assert [answer.number("i") for answer in answers] == list(range(20))
    assert [wire.read_produce(answer) for answer in answers] == [(0, i) for i in range(20)]
