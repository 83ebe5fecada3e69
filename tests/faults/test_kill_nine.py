"""SIGKILL of the broker while producers write, again and again, over one log directory."""

import random
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka import Message as Received

from tests.compat.brokers import start_broker
from tests.compat.confluent_client import ConfluentAdmin

_KILLS = 20
_PARTITIONS = 3
_ACKED_PER_ROUND = 150
_IDEMPOTENT = "idempotent"
_PLAIN = "plain"


@dataclass(slots=True)
class _Writer:
    """Sends numbers without end from a thread of its own, and keeps what was acknowledged."""

    topic: str
    settings: dict[str, object]
    acked: list[tuple[int, int, bytes]] = field(default_factory=list)
    failures: list[KafkaError] = field(default_factory=list)
    sent: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"writer-{self.topic}")
        self._thread.start()

    def finish(self) -> None:
        assert self._thread is not None
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        producer = Producer(self.settings)
        while not self._stopping.is_set():
            if len(producer) < 2000:
                for _ in range(20):
                    producer.produce(
                        self.topic,
                        b"%d" % self.sent,
                        partition=self.sent % _PARTITIONS,
                        on_delivery=self._delivered,
                    )
                    self.sent += 1
            producer.poll(0.002)
        producer.flush(30)

    def _delivered(self, error: KafkaError | None, message: Received) -> None:
        if error is None:
            self.acked.append((message.partition(), message.offset(), message.value()))
        else:
            self.failures.append(error)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until(predicate: Callable[[], bool], *, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not predicate():
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.005)


def _read_all(bootstrap: str, topic: str) -> dict[int, list[tuple[int, bytes]]]:
    """Offsets and values of every partition, in the order they are served."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    found: dict[int, list[tuple[int, bytes]]] = {p: [] for p in range(_PARTITIONS)}
    at_end = set()
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in found])
        deadline = time.monotonic() + 20
        while len(at_end) < _PARTITIONS:
            assert time.monotonic() < deadline, f"only at the end of {at_end} of {topic}"
            # A short time: it waits that long for the full number, whatever has come already.
            for message in consumer.consume(5000, timeout=0.1):
                deadline = time.monotonic() + 20
                if (error := message.error()) is None:
                    found[message.partition()].append((message.offset(), message.value()))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    at_end.add(message.partition())
    finally:
        consumer.close()
    return found


def survive_kills(work_dir: Path, kills: int) -> int:
    """Kills the broker so many times while it is written to; how many records it acknowledged."""
    port = _free_port()
    rng = random.Random(9)
    broker = start_broker(work_dir, port=port)
    for topic in (_IDEMPOTENT, _PLAIN):
        ConfluentAdmin(broker.bootstrap).create_topic(topic, _PARTITIONS, {})
    common: dict[str, object] = {
        "bootstrap.servers": broker.bootstrap,
        "acks": "all",
        "linger.ms": 1,
        "message.timeout.ms": 60_000,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 50,
        "retry.backoff.ms": 10,
        "retry.backoff.max.ms": 50,
        "topic.metadata.refresh.fast.interval.ms": 20,
        "log_level": 0,
    }
    writers = [
        _Writer(_IDEMPOTENT, {**common, "enable.idempotence": True}),
        _Writer(_PLAIN, {**common, "enable.idempotence": False, "retries": 1000}),
    ]

    for writer in writers:
        writer.start()
    try:
        for _ in range(kills):
            goals = [len(writer.acked) + _ACKED_PER_ROUND for writer in writers]
            _wait_until(
                lambda goals=goals: all(
                    len(w.acked) >= goal or w.failures
                    for w, goal in zip(writers, goals, strict=True)
                )
            )
            time.sleep(rng.uniform(0, 0.03))  # so that the kill falls into any part of an append
            broker.kill()
            broker = start_broker(work_dir, port=port)
    finally:
        for writer in writers:
            writer.finish()
    try:
        stored = {writer.topic: _read_all(broker.bootstrap, writer.topic) for writer in writers}
    finally:
        code = broker.stop()

    assert code == broker.clean_exit_code, broker.tail()
    for writer in writers:
        partitions = stored[writer.topic]
        assert writer.failures == []
        assert len(writer.acked) == writer.sent
        for partition, records in partitions.items():
            assert [offset for offset, _ in records] == list(range(len(records)))
            at_offset = dict(records)
            for where, offset, value in writer.acked:
                if where == partition:
                    assert at_offset.get(offset) == value
    counts = Counter(value for records in stored[_IDEMPOTENT].values() for _, value in records)
    assert set(counts.values()) == {1}
    for records in stored[_IDEMPOTENT].values():
        numbers = [int(value) for _, value in records]
        assert numbers == sorted(numbers)
    return sum(len(writer.acked) for writer in writers)


def test_acknowledged_records_survive_kill_nine_and_none_is_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON", sys.executable)  # the launcher need not look for one each time

    acked = survive_kills(tmp_path, _KILLS)

    assert acked >= 2 * _KILLS * _ACKED_PER_ROUND
