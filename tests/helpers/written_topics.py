"""A topic with a bit of everything in it, and what a plain consumer makes of that."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafkapy.clients.consumer import KafkaConsumer
from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.compression import CompressionType
from kafkapy.common.types import TopicPartition
from tests.helpers.ended_transactions import await_ended_transactions

TIMESTAMP = 1_700_000_000_000
HEADERS = ([], [("trace", b"1")], [("a", None), ("a", b""), ("ü", b"\xff")])

# Small segments, and no retention: the records are old.
CONFIGS = {"segment.bytes": "4000", "retention.ms": "-1"}

# key, value, topic, partition, offset, timestamp in milliseconds, timestamp type, headers
Row = tuple[Any, ...]


@contextmanager
def written_topic(bootstrap: str, topic: str, *, partitions: int) -> Iterator[None]:
    """Every codec, headers and nulls; transactions committed, aborted and, until the end, open.

    Each partition has all of it; the open transaction has one record in partition 0.
    """
    for codec in CompressionType:
        with KafkaProducer(
            bootstrap_servers=bootstrap, compression_type=codec.codec_name, linger_ms=20
        ) as producer:
            _send(producer, topic, partitions, codec.codec_name, count=30)
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap, "linger_ms": 5}
    with KafkaProducer(transactional_id=f"{topic}-done", **settings) as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            _send(producer, topic, partitions, f"transaction {number}", count=5)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    await_ended_transactions(bootstrap)
    # On a slow machine a test takes long, and the transaction is to stay open all the time.
    settings["transaction_timeout_ms"] = 900_000
    with KafkaProducer(transactional_id=f"{topic}-open", **settings) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).get(10)
        with KafkaProducer(bootstrap_servers=bootstrap) as other:
            other.send(topic, b"behind the open transaction", partition=0).get(10)
        yield
        producer.abort_transaction()


def consumed(bootstrap: str, topic: str, isolation: str) -> list[Row]:
    """All rows by partition and offset."""
    found: list[Row] = []
    with KafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False
    ) as consumer:
        partitions = [
            TopicPartition(topic, each) for each in consumer.partitions_for_topic(topic) or ()
        ]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(each) < ends[each] for each in partitions):
            for records in consumer.poll(timeout_ms=500).values():
                found.extend(
                    (
                        record.key,
                        record.value,
                        record.topic,
                        record.partition,
                        record.offset,
                        record.timestamp,
                        int(record.timestamp_type),
                        [tuple(header) for header in record.headers] or None,
                    )
                    for record in records
                )
    return sorted(found, key=lambda row: (row[3], row[4]))


def _send(producer: KafkaProducer, topic: str, partitions: int, what: str, *, count: int) -> None:
    for number in range(count):
        for partition in range(partitions):
            producer.send(
                topic,
                None if number % 7 == 3 else f"{what} {number} ".encode() * number,
                key=None if number % 3 == 1 else f"key {number}".encode(),
                headers=HEADERS[number % len(HEADERS)],
                partition=partition,
                timestamp_ms=TIMESTAMP + 1000 * number,
            )
    producer.flush()
