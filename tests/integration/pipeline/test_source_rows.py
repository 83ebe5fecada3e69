"""Rows of the source beside the records of a plain consumer."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.clients.consumer import ConsumerRecord
from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.kafka_source_reader import KafkaBatchReader
from kafkapy.testing import EmbeddedBroker
from tests.helpers.ended_transactions import await_ended_transactions
from tests.helpers.waiting import wait_until
from tests.integration.pipeline.conftest import MakeTopic
from tests.integration.pipeline.reading import (
    Row,
    batch_reader,
    consumed,
    numbers,
    options,
    produce,
    read,
    values,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEYS = 10
SMALL_FETCHES = {"kafka.max.partition.fetch.bytes": "2000"}


def as_row(record: ConsumerRecord) -> Row:
    return {
        "key": record.key,
        "value": record.value,
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": EPOCH + timedelta(milliseconds=record.timestamp),
        "timestampType": record.timestamp_type.value,
        "headers": [{"key": h.key, "value": h.value} for h in record.headers] or None,
    }


def assert_same(broker: EmbeddedBroker, topic: str, **more: str) -> list[Row]:
    """The source's rows, which are what a consumer reads."""
    isolation = more.get("kafka.isolation.level", "read_uncommitted")
    rows = read(broker, topic, **more)
    assert rows == [as_row(r) for r in consumed(broker, topic, isolation_level=isolation)]
    return rows


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_rows_are_the_records_whatever_the_codec(
    broker: EmbeddedBroker, make_topic: MakeTopic, codec: str
) -> None:
    topic = make_topic(2)
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        compression_type=codec,
        batch_size=1_000,
        linger_ms=5,
    ) as producer:
        for number in range(300):
            producer.send(
                topic,
                key=None if number % 3 == 0 else b"k%d" % number,
                value=None if number % 7 == 0 else b"v" * (number % 90),
                headers=[("a", b"%d" % number), ("a", None)] if number % 5 == 0 else None,
                partition=number % 2,
                timestamp_ms=1_700_000_000_000 - 1_000 * number,
            )
        producer.flush()

    rows = assert_same(broker, topic, **SMALL_FETCHES)

    assert len(rows) == 300
    assert assert_same(broker, topic, minPartitions="9") == rows


def test_the_brokers_time_is_told_apart(broker: EmbeddedBroker, make_topic: MakeTopic) -> None:
    topic = make_topic(**{"message.timestamp.type": "LogAppendTime"})
    produce(broker, topic, numbers(0, 3))

    assert [row["timestampType"] for row in assert_same(broker, topic)] == [1, 1, 1]


def test_only_the_columns_asked_for_are_there_in_the_order_asked_for(
    broker: EmbeddedBroker, topic: str
) -> None:
    produce(broker, topic, numbers(0, 3))
    schema = StructType([StructField("offset", LongType()), StructField("value", BinaryType())])

    reader = KafkaBatchReader(SourceOptions.for_batch(options(broker, topic)), schema)
    (partition,) = reader.partitions()
    (rows,) = reader.read(partition)

    assert rows.schema.names == ["offset", "value"]
    assert rows.to_pydict() == {"offset": [0, 1, 2], "value": [b"0", b"1", b"2"]}


def test_transactions_are_read_as_the_isolation_level_says(
    broker: EmbeddedBroker, topic: str
) -> None:
    servers = broker.bootstrap_servers
    produce(broker, topic, [b"plain"])
    with (
        KafkaProducer(transactional_id=f"{topic}-1", bootstrap_servers=servers) as first,
        KafkaProducer(transactional_id=f"{topic}-2", bootstrap_servers=servers) as second,
    ):
        first.init_transactions()
        second.init_transactions()
        first.begin_transaction()
        second.begin_transaction()
        for number in range(20):
            first.send(topic, b"committed-%d" % number)
            second.send(topic, b"aborted-%d" % number)
            first.flush()
            second.flush()
        second.abort_transaction()
        first.commit_transaction()
        await_ended_transactions(servers)
        second.begin_transaction()
        second.send(topic, b"open")
        second.flush()
        produce(broker, topic, [b"behind"])

        committed = assert_same(
            broker, topic, **{"kafka.isolation.level": "read_committed"}, **SMALL_FETCHES
        )
        everything = assert_same(broker, topic, **SMALL_FETCHES)
        second.abort_transaction()
        await_ended_transactions(servers)
        ended = assert_same(broker, topic, **{"kafka.isolation.level": "read_committed"})

    names = [b"committed-%d" % number for number in range(20)]
    assert values(committed) == [b"plain", *names]
    assert len(everything) == 43
    assert values(ended) == [b"plain", *names, b"behind"]
    # Each range alone, also those that end among markers and aborted records.
    parts = assert_same(
        broker, topic, maxRecordsPerPartition="3", **{"kafka.isolation.level": "read_committed"}
    )
    assert parts == ended


def test_gaps_that_compaction_leaves_are_passed_over(
    broker: EmbeddedBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(**{"cleanup.policy": "compact", "segment.bytes": "2000"})
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(150):
            producer.send(topic, key=b"%d" % (number % KEYS), value=b"%d" % number)
            producer.flush()
    wait_until(lambda: _is_compacted(broker, topic))

    rows = assert_same(broker, topic)

    assert {row["key"]: row["value"] for row in rows} == {
        b"%d" % (number % KEYS): b"%d" % number for number in range(150 - KEYS, 150)
    }
    # Ranges that begin, end or lie as a whole where nothing is left.
    assert assert_same(broker, topic, maxRecordsPerPartition="7") == rows


def _is_compacted(broker: EmbeddedBroker, topic: str) -> bool:
    """To the end, so that it stays as it is: up to the active segment each key is there once."""
    active = max(int(path.stem) for path in (broker.log_dir / f"{topic}-0").glob("*.log"))
    return broker.records(topic)[0].offset == active - KEYS


def test_a_batch_begins_after_records_that_were_deleted(broker: EmbeddedBroker, topic: str) -> None:
    produce(broker, topic, numbers(0, 10))
    with AdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 4})

    assert values(assert_same(broker, topic)) == numbers(4, 10)


def test_an_empty_topic_has_no_rows(broker: EmbeddedBroker, topic: str) -> None:
    reader = batch_reader(broker, topic)

    assert reader.partitions() == []


def test_batches_start_and_end_where_the_options_say(
    broker: EmbeddedBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    for partition in (0, 1):
        for time in (1_000, 2_000, 3_000):
            produce(
                broker,
                topic,
                [b"%d-%d-%d" % (partition, time, i) for i in (0, 1)],
                partition=partition,
                timestamp_ms=time,
            )

    def offsets(**options: str) -> list[tuple[int, int]]:
        return [(row["partition"], row["offset"]) for row in read(broker, topic, **options)]

    whole = [(partition, offset) for partition in (0, 1) for offset in range(6)]
    assert offsets() == offsets(startingOffsets="earliest", endingOffsets="latest") == whole
    assert offsets(
        startingOffsets=f'{{"{topic}": {{"0": 4, "1": -2}}}}',
        endingOffsets=f'{{"{topic}": {{"0": -1, "1": 1}}}}',
    ) == [(0, 4), (0, 5), (1, 0)]
    assert offsets(startingTimestamp="2001", endingTimestamp="3000") == []
    assert offsets(startingTimestamp="2000", endingTimestamp="3000") == [
        (0, 2), (0, 3), (1, 2), (1, 3)
    ]  # fmt: skip
    assert offsets(
        startingOffsetsByTimestamp=f'{{"{topic}": {{"0": 3000, "1": 9999}}}}',
        startingOffsetsByTimestampStrategy="latest",
        endingOffsetsByTimestamp=f'{{"{topic}": {{"0": 9999, "1": 9999}}}}',
    ) == [(0, 4), (0, 5)]


def test_partitions_are_assigned_and_topics_matched(
    broker: EmbeddedBroker, make_topic: MakeTopic
) -> None:
    first, second = make_topic(2), make_topic()
    produce(broker, first, [b"a"], partition=0)
    produce(broker, first, [b"b"], partition=1)
    produce(broker, second, [b"c"])
    broker.create_topic(f"{first}-not")

    def found(**strategy: str) -> list[tuple[str, str]]:
        servers = {"kafka.bootstrap.servers": broker.bootstrap_servers}
        reader = KafkaBatchReader(
            SourceOptions.for_batch(servers | strategy), spark_schema(include_headers=False)
        )
        return sorted(
            (row["topic"], row["value"].decode())
            for partition in reader.partitions()
            for rows in reader.read(partition)
            for row in rows.to_pylist()
        )

    assert found(assign=f'{{"{first}": [1]}}') == [(first, "b")]
    assert found(subscribePattern=f"{first}|{second}") == sorted(
        [(first, "a"), (first, "b"), (second, "c")]
    )
    assert found(subscribePattern=f"{first}.+") == []
    assert found(subscribePattern="no-such-topic") == []
