"""The broker and topics of the compatibility tests, and consumers that are closed at the end.

KAFKAPY_COMPAT_BROKER=apache runs these tests against Apache Kafka.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from kafkapy.clients.consumer import KafkaConsumer
from tests.compat.brokers import Broker
from tests.compat.conftest import broker, make_topic, neutral_admin  # noqa: F401


@pytest.fixture
def make_consumer(broker: Broker) -> Iterator[Callable[..., KafkaConsumer]]:  # noqa: F811
    """Of a group of its own unless told, from the start of the log, quick to notice things."""
    made: list[KafkaConsumer] = []

    def make(*topics: str, **settings: Any) -> KafkaConsumer:
        defaults = {
            "bootstrap_servers": broker.bootstrap,
            "group_id": f"group-{uuid.uuid4().hex}",
            "auto_offset_reset": "earliest",
            "heartbeat_interval_ms": 200,
            "retry_backoff_ms": 20,
            "retry_backoff_max_ms": 100,
        }
        consumer = KafkaConsumer(*topics, **{**defaults, **settings})
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        consumer.close(5_000)


@pytest.fixture
def produce(broker: Broker) -> Iterator[Callable[..., None]]:  # noqa: F811
    """Write values to a partition with a client that is not under test here."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, "log_level": 0})

    def write(topic: str, *values: str | bytes | None, partition: int = 0, **more: Any) -> None:
        for value in values:
            producer.produce(topic, value, partition=partition, **more)
        assert producer.flush(20) == 0

    yield write
    producer.flush(5)
