"""Topics read by the source, and by a plain consumer to compare with."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafkapy.clients.consumer import ConsumerRecord, KafkaConsumer, TopicPartition
from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.errors import KafkaError
from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.kafka_source_reader import KafkaBatchReader
from kafkapy.pipeline.source.micro_batch_reader import MicroBatchReader
from kafkapy.testing import BrokerHandle
from tests.helpers.waiting import wait_until

if TYPE_CHECKING:
    from kafkapy.pipeline.source.kafka_stream_reader import KafkaStreamReader

Row = dict[str, Any]


def options(broker: BrokerHandle, topic: str, **more: str) -> dict[str, str]:
    base = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    # Tests of what passes by itself need not wait long for it.
    return base | {"kafka.retry.backoff.ms": "20"} | more


def batch_reader(broker: BrokerHandle, topic: str, **more: str) -> KafkaBatchReader:
    parsed = SourceOptions.for_batch(options(broker, topic, **more))
    return KafkaBatchReader(parsed, spark_schema(include_headers=True))


def read(broker: BrokerHandle, topic: str, **more: str) -> list[Row]:
    """All rows of a batch, by partition and offset."""
    reader = batch_reader(broker, topic, **more)
    return sorted(
        (
            row
            for partition in reader.partitions()
            for rows in reader.read(partition)
            for row in rows.to_pylist()
        ),
        key=lambda row: (row["partition"], row["offset"]),
    )


def values(rows: Iterable[Row]) -> list[bytes | None]:
    return [row["value"] for row in rows]


def stream_reader(broker: BrokerHandle, topic: str, **more: str) -> "KafkaStreamReader":
    # Here alone: it stands on what Spark 4.1 has not got.
    from kafkapy.pipeline.source.kafka_stream_reader import KafkaStreamReader

    parsed = SourceOptions.for_stream(options(broker, topic, **more))
    return KafkaStreamReader(parsed, spark_schema(include_headers=False))


def read_between(
    reader: MicroBatchReader, start: dict[str, Any], end: dict[str, Any]
) -> list[bytes | None]:
    return [
        value
        for partition in reader.partitions(start, end)
        for rows in reader.read(partition)
        for value in rows["value"].to_pylist()
    ]


def consumed(broker: BrokerHandle, topic: str, **settings: Any) -> list[ConsumerRecord]:
    """What a plain consumer reads, up to the end of the logs."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, **settings)
    with consumer:
        partitions = [
            TopicPartition(topic, number)
            for number in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        found: list[ConsumerRecord] = []
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for records in consumer.poll(100).values():
                found += records
    return sorted(found, key=lambda record: (record.partition, record.offset))


def produce(
    broker: BrokerHandle,
    topic: str,
    values: Iterable[bytes | None],
    *,
    partition: int = 0,
    timestamp_ms: int | None = None,
    **settings: Any,
) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **settings) as producer:
        for value in values:
            producer.send(topic, value=value, partition=partition, timestamp_ms=timestamp_ms)
        producer.flush()


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def make_anew(broker: BrokerHandle, topic: str) -> None:
    """Delete a topic and create it again, which takes until the first is gone."""
    broker.delete_topic(topic)

    def created() -> bool:
        try:
            broker.create_topic(topic)
        except KafkaError:
            return False
        return True

    wait_until(created)
