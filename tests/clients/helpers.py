"""What tests do with consumers again and again."""

import time
from collections.abc import Callable, Iterable

from kafkapy.clients.consumer import ConsumerRecord, KafkaConsumer

TIMEOUT_S = 20.0


def read(
    consumer: KafkaConsumer, count: int, *, timeout: float = TIMEOUT_S
) -> list[ConsumerRecord]:
    """At least so many records; the test fails when they do not come."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + timeout
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records came"
        for polled in consumer.poll(200).values():
            records += polled
    return records


def values(records: Iterable[ConsumerRecord]) -> list[bytes]:
    return [record.value for record in records]


def poll_until(
    condition: Callable[[], object], *consumers: KafkaConsumer, timeout: float = TIMEOUT_S
) -> list[ConsumerRecord]:
    """Poll all of them in turns until the condition holds; what they returned."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        for consumer in consumers:
            for polled in consumer.poll(50).values():
                records += polled
    return records
