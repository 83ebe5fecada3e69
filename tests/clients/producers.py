"""Producers under test, and what they wrote as a client that is not under test reads it."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, Message, TopicPartition

from kafkapy.clients.producer import KafkaProducer
from tests.compat.brokers import Broker
from tests.helpers.ended_transactions import await_ended_transactions


def producer_of(broker: Broker, **settings: Any) -> KafkaProducer:
    """Quick to notice things, slow to give up."""
    defaults = {
        "bootstrap_servers": broker.bootstrap,
        "retry_backoff_ms": 10,
        "retry_backoff_max_ms": 50,
        "reconnect_backoff_ms": 10,
        "reconnect_backoff_max_ms": 50,
        "max_block_ms": 20_000,
    }
    return KafkaProducer(**{**defaults, **settings})


def read_back(
    broker: Broker,
    topic: str,
    *,
    partition: int = 0,
    isolation: str = "read_committed",
    timeout_s: float = 20,
) -> list[Message]:
    """Everything in the partition up to its end, in order; of transactions, once they ended."""
    await_ended_transactions(broker.bootstrap)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "read-back",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    messages: list[Message] = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is None:
                messages.append(message)
            elif message.error().name() == "_PARTITION_EOF":
                return messages
        raise AssertionError(f"no end of {topic}-{partition} within {timeout_s} s")
    finally:
        consumer.close()


def values_of(broker: Broker, topic: str, **more: Any) -> list[bytes | None]:
    return [message.value() for message in read_back(broker, topic, **more)]
