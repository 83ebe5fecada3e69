"""kcat (Debian's, an older librdkafka) against the broker."""

import itertools
import json
from collections.abc import Sequence

import pytest

from tests.compat.brokers import Broker
from tests.compat.cases import BASE_TIMESTAMP_MS, CODECS, Can, Message, assert_received, numbered
from tests.compat.contract import ClientContract, MakeTopic
from tests.compat.tools import require_kcat, run
from tests.compat.wire import stored_batches

_KEY_END = "<k>"
_RECORD_END = "<r>"


class KcatClient:
    can = frozenset({Can.NULL_VALUE, Can.HEADERS, Can.IDEMPOTENCE})

    def __init__(self, bootstrap: str, **settings: str) -> None:
        self._command = [require_kcat(), "-b", bootstrap]
        for key, value in settings.items():
            self._command += ["-X", f"{key}={value}"]

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        settings = {
            "acks": acks,
            "enable.idempotence": str(idempotent).lower(),
            "message.max.bytes": "2000000",
        }
        options = ["-P", "-t", topic, "-z", codec, "-Z", "-D", _RECORD_END, "-K", _KEY_END]
        for key, value in settings.items():
            options += ["-X", f"{key}={value}"]
        # Partition and headers are options of the whole run.
        by_partition = sorted(messages, key=lambda m: m.partition)
        for (partition, headers), group in itertools.groupby(
            by_partition, key=lambda m: (m.partition, m.headers)
        ):
            named = [f"{name}={(value or b'').decode()}" for name, value in headers]
            header_options = list(itertools.chain.from_iterable(("-H", h) for h in named))
            lines = [(m.key or b"").decode() + _KEY_END + (m.value or b"").decode() for m in group]
            command = [*self._command, *options, "-p", str(partition), *header_options]
            run(command, stdin=_RECORD_END.join(lines))

    def consume(self, topic: str, partition: int, count: int, *, offset: int = 0) -> list[Message]:
        options = ["-C", "-t", topic, "-p", str(partition), "-o", str(offset), "-c", str(count)]
        return [_message(line) for line in self.run(*options, "-q", "-J").splitlines()]

    def run(self, *options: str) -> str:
        return run([*self._command, *options])


def _message(line: str) -> Message:
    record = json.loads(line)
    names_and_values = record.get("headers", [])
    headers = tuple(
        (name, value.encode())
        for name, value in zip(names_and_values[::2], names_and_values[1::2], strict=True)
    )
    return Message(
        _encoded(record["payload"]),
        _encoded(record["key"]),
        headers,
        record.get("ts"),
        record["partition"],
    )


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


@pytest.fixture(scope="module")
def client(broker: Broker) -> KcatClient:
    return KcatClient(broker.bootstrap)


class TestKcat(ClientContract):
    def test_metadata_names_the_broker_and_the_partitions(
        self, broker: Broker, client: KcatClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(partitions=3)

        described = json.loads(client.run("-L", "-J", "-t", topic))

        assert [b["name"] for b in described["brokers"]] == [broker.bootstrap]
        assert described["controllerid"] == described["brokers"][0]["id"]
        assert [p["partition"] for p in described["topics"][0]["partitions"]] == [0, 1, 2]

    def test_query_answers_offset_of_a_timestamp(
        self, client: KcatClient, make_topic: MakeTopic
    ) -> None:
        topic = make_topic()
        client.produce(topic, numbered(10))

        answers = {
            when: client.run("-Q", "-t", f"{topic}:0:{when}").split()[-1]
            for when in (BASE_TIMESTAMP_MS, -1, -2)
        }

        assert answers == {BASE_TIMESTAMP_MS: "0", -1: "10", -2: "0"}

    def test_tail_reads_the_last_records(self, client: KcatClient, make_topic: MakeTopic) -> None:
        topic = make_topic()
        sent = numbered(20)
        client.produce(topic, sent)

        out = client.run("-C", "-t", topic, "-p", "0", "-o", "-3", "-e", "-q", "-J")

        assert_received([_message(line) for line in out.splitlines()], sent[-3:])

    @pytest.mark.parametrize("release", ["0.8.2", "0.9.0", "0.10.0", "0.11.0"])
    @pytest.mark.parametrize("codec", CODECS[:-1])
    def test_kcat_told_of_an_old_release_writes_and_reads(
        self, broker: Broker, make_topic: MakeTopic, release: str, codec: str
    ) -> None:
        topic = make_topic()
        old = KcatClient(
            broker.bootstrap,
            **{"api.version.request": "false", "broker.version.fallback": release},
        )
        sent = [Message(b"old record " * 30, b"key-%d" % i) for i in range(50)]

        old.produce(topic, sent, codec=codec, acks="1")

        got = old.consume(topic, 0, len(sent))
        assert [(m.key, m.value) for m in got] == [(m.key, m.value) for m in sent]
        assert {b.codec_id for b in stored_batches(broker.address, topic)} == {CODECS.index(codec)}
