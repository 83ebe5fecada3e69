"""kafkapy and Apache Kafka take turns as the same broker of the same ZooKeeper.

Nothing is copied or touched in between: each starts on the log directories, the meta.properties,
the checkpoints and the znodes as the other left them, in order or by kill -9.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kafkapy.utils.properties import parse_properties
from tests.compat.brokers import Broker, start_apache, start_kafkapy
from tests.compat.cases import CODECS, EVERYTHING, Message, assert_received, numbered, samples
from tests.compat.confluent_client import ConfluentAdmin, ConfluentClient
from tests.compat.contract import LATEST
from tests.helpers.zookeeper_server import ZooKeeperServer, missing_zookeeper

_WAIT_S = 20
_SMALL_SEGMENTS = {"segment.bytes": "20000", "index.interval.bytes": "1000"}
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "2000",
    "min.cleanable.dirty.ratio": "0.01",
}
_KEYS = 10
_SETTINGS = {
    "broker.id": "7",
    "zookeeper.session.timeout.ms": "30000",
    "log.cleaner.backoff.ms": "100",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}
_CHECKPOINTS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
_chroots = count()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    reason = missing_zookeeper()
    if reason is not None:
        pytest.skip(f"no ZooKeeper: {reason}")
    server = ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"))
    yield server
    server.stop()


@dataclass(slots=True)
class Turns:
    """A broker whose program changes, and what has been written to it so far."""

    work_dir: Path
    connect: str
    znodes: KazooClient
    stopped_in_order: bool
    written: dict[str, list[Message]] = field(default_factory=dict)
    committed: list[Message] = field(default_factory=list)
    latest_by_key: dict[bytes | None, bytes | None] = field(default_factory=dict)
    group_offset: int = 0

    @property
    def log_dirs(self) -> list[Path]:
        return [self.work_dir / "first", self.work_dir / "second"]

    @contextmanager
    def turn(self, start: Callable[..., Broker]) -> Iterator[Broker]:
        settings = {
            **_SETTINGS,
            "zookeeper.connect": self.connect,
            "log.dirs": ",".join(map(str, self.log_dirs)),
        }
        self._end_session()
        broker = start(self.work_dir, overrides=settings)
        try:
            yield broker
        except BaseException:
            broker.kill()
            raise
        if self.stopped_in_order:
            assert broker.stop() == broker.clean_exit_code, broker.tail()
            self._check_marks_of_a_clean_stop()
        else:
            broker.kill()

    def _end_session(self) -> None:
        """What ZooKeeper does by itself when the session of a killed broker has timed out."""
        for path in ("/brokers/ids/7", "/controller"):
            with suppress(NoNodeError):
                self.znodes.delete(path)

    def identity(self) -> list[dict[str, str]]:
        return [parse_properties((d / "meta.properties").read_text()) for d in self.log_dirs]

    def cluster_id(self) -> str:
        return json.loads(self.znodes.get("/cluster/id")[0])["id"]

    def topic_znodes(self) -> dict[str, dict[str, object]]:
        """Assignment, topic id and configuration of each topic, as JSON."""
        found = {}
        for topic in self.znodes.get_children("/brokers/topics"):
            for path in (f"/brokers/topics/{topic}", f"/config/topics/{topic}"):
                found[path] = json.loads(self.znodes.get(path)[0])
        return found

    def _check_marks_of_a_clean_stop(self) -> None:
        assert self.znodes.get_children("/brokers/ids") == []
        marks = [json.loads((d / ".kafka_cleanshutdown").read_text()) for d in self.log_dirs]
        assert marks == [{"version": 0, "brokerEpoch": -1}] * 2
        for name in _CHECKPOINTS:
            lines = [
                line for d in self.log_dirs for line in (d / name).read_text().splitlines()[2:]
            ]
            assert {f"{topic} 0 {len(sent)}" for topic, sent in self.written.items()} <= set(lines)
            assert len({line.rpartition(" ")[0] for line in lines}) == len(lines)


@pytest.fixture(params=["stop", "kill -9"])
def turns(
    request: pytest.FixtureRequest, zookeeper: ZooKeeperServer, tmp_path: Path
) -> Iterator[Turns]:
    connect = f"127.0.0.1:{zookeeper.port}/turns/{next(_chroots)}"
    znodes = KazooClient(f"127.0.0.1:{zookeeper.port}")
    znodes.start()
    try:
        znodes.chroot = "/" + connect.partition("/")[2]
        yield Turns(tmp_path, connect, znodes, request.param == "stop")
    finally:
        znodes.stop()
        znodes.close()


@pytest.mark.timeout(240)
def test_each_goes_on_where_the_other_left_off(turns: Turns) -> None:
    with turns.turn(start_apache) as broker:
        _create_topics(broker)
        _write(broker, turns)
        _await_compaction(broker)
    identity, cluster_id = turns.identity(), turns.cluster_id()
    topics = turns.topic_znodes()

    with turns.turn(start_kafkapy) as broker:
        _check(broker, turns)
        _write(broker, turns)
        _check(broker, turns)
        assert not (turns.log_dirs[0] / "kafkapy-metadata.sqlite").exists()
    assert turns.identity() == identity
    assert turns.cluster_id() == cluster_id == identity[0]["cluster.id"]
    assert turns.topic_znodes() == topics

    with turns.turn(start_apache) as broker:
        _check(broker, turns)
        ConfluentAdmin(broker.bootstrap).delete_topic("disk-none")
        del turns.written["disk-none"]
    assert turns.identity() == identity

    # What is not there is built again, after a clean stop too.
    for file in [f for d in turns.log_dirs for f in d.glob("disk-*/*") if f.suffix != ".log"]:
        file.unlink()
    with turns.turn(start_kafkapy) as broker:
        _check(broker, turns)
        assert ConfluentAdmin(broker.bootstrap).partition_count("disk-none") is None
        assert not [d for d in turns.log_dirs if (d / "disk-none-0").exists()]


def _create_topics(broker: Broker) -> None:
    admin = ConfluentAdmin(broker.bootstrap)
    for codec in CODECS:
        admin.create_topic(f"disk-{codec}", 1, _SMALL_SEGMENTS)
    admin.create_topic("transactions", 1, _SMALL_SEGMENTS)
    admin.create_topic("compacted", 1, _COMPACTED)


def _write(broker: Broker, turns: Turns) -> None:
    """Adds to every topic, ends three transactions and leaves a fourth open, commits an offset."""
    singly = ConfluentClient(broker.bootstrap, **{"batch.num.messages": "1"})
    together = ConfluentClient(broker.bootstrap, **{"batch.num.messages": "100"})
    for codec in CODECS:
        topic = f"disk-{codec}"
        messages = [*samples(EVERYTHING), *numbered(400)]
        # One is enough, for librdkafka takes half a second to ask for a producer id.
        together.produce(topic, messages[:-100], codec=codec, idempotent=codec == "gzip")
        singly.produce(topic, messages[-100:], codec=codec)
        turns.written.setdefault(topic, []).extend(messages)
    turns.committed += _write_transactions(broker)
    updates = [
        Message(b"%d of turn %d" % (number, turns.group_offset), b"key-%d" % (number % _KEYS))
        for number in range(10 * _KEYS)
    ]
    singly.produce("compacted", updates)
    turns.latest_by_key.update((m.key, m.value) for m in updates)
    turns.group_offset += 5
    with _group_member(broker) as consumer:
        consumer.commit(
            offsets=[TopicPartition("disk-gzip", 0, turns.group_offset)], asynchronous=False
        )


def _write_transactions(broker: Broker) -> list[Message]:
    """Commits, aborts, commits, and leaves one to whoever is next; the committed messages."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "turns"})
    # Ends the one that was left open under the other program.
    producer.init_transactions(_WAIT_S)
    messages = numbered(400)
    for number, part in enumerate(messages[i : i + 100] for i in range(0, 400, 100)):
        producer.begin_transaction()
        for message in part:
            producer.produce("transactions", message.value, message.key, partition=0)
        assert producer.flush(_WAIT_S) == 0
        if number == 1:
            producer.abort_transaction(_WAIT_S)
        elif number < 3:
            producer.commit_transaction(_WAIT_S)
    return messages[:100] + messages[200:300]


def _await_compaction(broker: Broker) -> None:
    admin = ConfluentAdmin(broker.bootstrap)
    written = admin.offset_for("compacted", 0, LATEST)
    deadline = time.monotonic() + _WAIT_S
    while len(_read_to_end(broker, "compacted")) > written // 2:
        assert time.monotonic() < deadline, "not compacted"


def _check(broker: Broker, turns: Turns) -> None:
    client = ConfluentClient(broker.bootstrap)
    admin = ConfluentAdmin(broker.bootstrap)
    for topic, messages in turns.written.items():
        # First a consumer: unlike the admin client it waits for the leader after a restart.
        assert_received(client.consume(topic, 0, len(messages)), messages)
        middle = len(messages) // 2
        tail = client.consume(topic, 0, len(messages) - middle, offset=middle)
        assert_received(tail, messages[middle:])
        assert admin.offset_for(topic, 0, LATEST) == len(messages)
    assert [m.value for m in _read_to_end(broker, "transactions")] == [
        m.value for m in turns.committed
    ]
    assert {m.key: m.value for m in _read_to_end(broker, "compacted")} == turns.latest_by_key
    with _group_member(broker) as consumer:
        (stored,) = consumer.committed([TopicPartition("disk-gzip", 0)], _WAIT_S)
    assert stored.offset == turns.group_offset


def _read_to_end(broker: Broker, topic: str) -> list[Message]:
    """All that is committed."""
    settings = {"enable.partition.eof": True, "isolation.level": "read_committed"}
    with _group_member(broker, **settings) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        read = []
        while (received := consumer.poll(_WAIT_S)) is not None and received.error() is None:
            read.append(Message(received.value(), received.key()))
        assert received is not None, f"no end of {topic} within {_WAIT_S} s"
        return read


@contextmanager
def _group_member(broker: Broker, **settings: object) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "turns",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 20,
            **settings,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()
