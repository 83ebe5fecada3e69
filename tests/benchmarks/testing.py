"""What a test waits for: the broker, a fresh topic, a rollback."""

import subprocess
import sys
import time
from itertools import count

from tests.benchmarks.broker_client import BenchmarkError
from tests.benchmarks.measures import Bar, Figure, Measure, Subject

_TOPICS = 10
_TIMEOUT_S = 60
_COLD = Measure(
    name="testing-cold",
    what="test: no broker yet to first record consumed",
    unit="ms",
    limit="",
    bars=(Bar(1_000, is_maximum=True),),
)
_READY = Measure(
    name="testing-ready",
    what="test: broker ready, in the test's process",
    unit="ms",
    limit="",
    bars=(Bar(500, is_maximum=True),),
)
_FRESH_TOPIC = Measure(
    name="testing-topic",
    what="test: fresh topic to first record consumed",
    unit="ms",
    limit="",
    bars=(Bar(50, is_maximum=True),),
)
_CHECKPOINT = Measure(
    name="testing-checkpoint", what="test: checkpoint of ten topics", unit="ms", limit=""
)
_ROLLBACK = Measure(
    name="testing-rollback",
    what="test: rollback of ten topics after a test",
    unit="ms",
    limit="",
    bars=(Bar(20, is_maximum=True),),
)
_AT_ONCE = Measure(
    name="testing-rollback-at-once",
    what="test: rollback at once after another",
    unit="ms",
    limit="",
)


def measure_testing(rounds: int) -> list[Figure]:
    """Raises BenchmarkError without confluent-kafka, the client that is used."""
    cold = [_cold() for _ in range(rounds + 1)][1:]  # the first may have to compile modules
    return [
        Figure(_READY, {Subject.OURS: [ready for ready, _ in cold]}),
        Figure(_COLD, {Subject.OURS: [consumed for _, consumed in cold]}),
        *_warm(max(rounds, 7)),
    ]


def _cold() -> tuple[float, float]:
    """In an interpreter of its own, as a test run is."""
    command = [sys.executable, "-m", "tests.benchmarks.testing"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    if done.returncode != 0:
        raise BenchmarkError(f"testing: {done.stderr.strip().splitlines()[-1]}")
    ready, consumed = map(float, done.stdout.split())
    return ready, consumed


def _warm(rounds: int) -> list[Figure]:
    from kafkapy.testing import EmbeddedBroker

    fresh: list[float] = []
    checkpoints: list[float] = []
    rollbacks: list[float] = []
    at_once: list[float] = []
    names = (f"topic-{number}" for number in count())
    with EmbeddedBroker() as broker:
        for _ in range(rounds + 1):
            begun = time.monotonic()
            topic = next(names)
            broker.create_topic(topic)
            fresh.append((_send_and_receive(broker.bootstrap_servers, topic) - begun) * 1000)
        while len(broker.topics()) < _TOPICS:
            broker.create_topic(next(names))
        topics = list(broker.topics())
        for _ in range(rounds):
            begun = time.monotonic()
            checkpoint = broker.checkpoint()
            checkpoints.append(_ms_since(begun))
            for topic in topics:
                _send_and_receive(broker.bootstrap_servers, topic)
            begun = time.monotonic()
            broker.rollback(checkpoint)
            rollbacks.append(_ms_since(begun))
            begun = time.monotonic()
            broker.rollback(checkpoint)
            at_once.append(_ms_since(begun))
            broker.create_topic(next(names))  # so that the next checkpoint is another
            broker.discard(checkpoint)
    return [
        Figure(measure, {Subject.OURS: values})
        for measure, values in (
            (_FRESH_TOPIC, fresh[1:]),
            (_CHECKPOINT, checkpoints),
            (_ROLLBACK, rollbacks),
            (_AT_ONCE, at_once),
        )
    ]


def _send_and_receive(bootstrap_servers: str, topic: str) -> float:
    """One record, with a producer and a consumer made for it; when it was there."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    # Without lingering: the time wanted is the broker's.
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    producer.produce(topic, b"value")
    producer.flush(_TIMEOUT_S)
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "bench"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(_TIMEOUT_S)
    if message is None or message.error() is not None:
        raise BenchmarkError(f"testing: no record of {topic} was consumed")
    received = time.monotonic()
    consumer.close()
    return received


def _ms_since(begun: float) -> float:
    return (time.monotonic() - begun) * 1000


def main() -> None:
    """Prints how long the broker and how long the first record took."""
    # A test has loaded its client before it asks for a broker.
    import confluent_kafka  # noqa: F401

    begun = time.monotonic()
    from kafkapy.testing import EmbeddedBroker

    with EmbeddedBroker() as broker:
        ready = _ms_since(begun)
        broker.create_topic("topic")
        received = _send_and_receive(broker.bootstrap_servers, "topic")
        print(ready, (received - begun) * 1000)


if __name__ == "__main__":
    main()
