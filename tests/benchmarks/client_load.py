"""One client library under load, in a process of its own: prints the records a second.

    python -m tests.benchmarks.client_load kafka-python produce 127.0.0.1:9092 topic 1024 2.0

All libraries get the same settings where they have them, and their defaults elsewhere. `consume`
reads the topic's one partition from the start, over and over.
"""

from __future__ import annotations

import asyncio
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

KAFKAPY = "kafkapy"
KAFKA_PYTHON = "kafka-python"
AIOKAFKA = "aiokafka"
LIBRARIES = (KAFKAPY, KAFKA_PYTHON, AIOKAFKA)
DIRECTIONS = ("produce", "consume")

_PRODUCER = {"acks": "all", "linger_ms": 5}
# Starting over is not to wait for a fetch that was sent ahead and waits at the topic's end.
_CONSUMER = {
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 5,
}
# Clocks are not free: so many records are sent between two looks at one.
_RECORDS_A_LOOK = 500
_WARM_UP_S = 0.5
_POLL_TIMEOUT_MS = 1_000


def _produce(producer: Any, topic: str, size: int, seconds: float) -> float:
    value = bytes(size)
    producer.send(topic, value).get(30)

    def send_for(seconds: float) -> float:
        begun = time.perf_counter()
        sent = 0
        while time.perf_counter() - begun < seconds:
            for _ in range(_RECORDS_A_LOOK):
                producer.send(topic, value)
            sent += _RECORDS_A_LOOK
        producer.flush()
        return sent / (time.perf_counter() - begun)

    send_for(_WARM_UP_S)
    rate = send_for(seconds)
    producer.close()
    return rate


def _consume(consumer: Any, partition: Any, seconds: float) -> float:
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]

    def read_for(seconds: float) -> float:
        begun = time.perf_counter()
        count = 0
        while time.perf_counter() - begun < seconds:
            consumer.seek_to_beginning()
            position = 0
            while position < end and time.perf_counter() - begun < seconds:
                for records in consumer.poll(timeout_ms=_POLL_TIMEOUT_MS).values():
                    count += len(records)
                    position = records[-1].offset + 1
        return count / (time.perf_counter() - begun)

    read_for(_WARM_UP_S)
    rate = read_for(seconds)
    consumer.close()
    return rate


def _kafkapy(direction: str, servers: str, topic: str, size: int, seconds: float) -> float:
    if direction == "produce":
        from kafkapy.clients.producer import KafkaProducer

        return _produce(KafkaProducer(bootstrap_servers=servers, **_PRODUCER), topic, size, seconds)
    from kafkapy.clients.consumer import KafkaConsumer
    from kafkapy.common.types import TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=servers, **_CONSUMER)
    return _consume(consumer, TopicPartition(topic, 0), seconds)


def _kafka_python(direction: str, servers: str, topic: str, size: int, seconds: float) -> float:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    if direction == "produce":
        return _produce(KafkaProducer(bootstrap_servers=servers, **_PRODUCER), topic, size, seconds)
    consumer = KafkaConsumer(bootstrap_servers=servers, **_CONSUMER)
    return _consume(consumer, TopicPartition(topic, 0), seconds)


def _aiokafka(direction: str, servers: str, topic: str, size: int, seconds: float) -> float:
    load = _aiokafka_produce if direction == "produce" else _aiokafka_consume
    return asyncio.run(load(servers, topic, size, seconds))


async def _timed(work: Callable[[float], Awaitable[int]], seconds: float) -> float:
    await work(_WARM_UP_S)
    begun = time.perf_counter()
    return await work(seconds) / (time.perf_counter() - begun)


async def _aiokafka_produce(servers: str, topic: str, size: int, seconds: float) -> float:
    from aiokafka import AIOKafkaProducer

    value = bytes(size)

    async def send_for(seconds: float) -> int:
        begun = time.perf_counter()
        sent = 0
        while time.perf_counter() - begun < seconds:
            for _ in range(_RECORDS_A_LOOK):
                await producer.send(topic, value)
            sent += _RECORDS_A_LOOK
        await producer.flush()
        return sent

    async with AIOKafkaProducer(bootstrap_servers=servers, **_PRODUCER) as producer:
        return await _timed(send_for, seconds)


async def _aiokafka_consume(servers: str, topic: str, size: int, seconds: float) -> float:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    partition = TopicPartition(topic, 0)

    async def read_for(seconds: float) -> int:
        begun = time.perf_counter()
        count = 0
        while time.perf_counter() - begun < seconds:
            await consumer.seek_to_beginning(partition)
            position = 0
            while position < end and time.perf_counter() - begun < seconds:
                got = await consumer.getmany(timeout_ms=_POLL_TIMEOUT_MS, max_records=500)
                for records in got.values():
                    count += len(records)
                    position = records[-1].offset + 1
        return count

    consumer = AIOKafkaConsumer(bootstrap_servers=servers, **_CONSUMER)
    consumer.assign([partition])
    async with consumer:
        end = (await consumer.end_offsets([partition]))[partition]
        return await _timed(read_for, seconds)


_LOADS = {KAFKAPY: _kafkapy, KAFKA_PYTHON: _kafka_python, AIOKAFKA: _aiokafka}


def main(arguments: list[str]) -> int:
    library, direction, servers, topic, size, seconds = arguments
    warnings.simplefilter("ignore")
    print(_LOADS[library](direction, servers, topic, int(size), float(seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
