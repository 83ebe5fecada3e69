"""Records as they come out: bytes, headers, codecs, transactions, deserializers, interceptors."""

import json
import threading
from collections.abc import Callable, Mapping

import pytest
from confluent_kafka import Producer

from kafkapy.clients.consumer import (
    ConsumerInterceptor,
    ConsumerRecord,
    KafkaConsumer,
    OffsetAndMetadata,
    RecordDeserializationError,
    TopicPartition,
    WakeupError,
)
from kafkapy.common.record.record import Header, TimestampType
from tests.clients.helpers import poll_until, read, values
from tests.compat.brokers import Broker
from tests.helpers.ended_transactions import await_ended_transactions

Make = Callable[..., KafkaConsumer]
MakeTopic = Callable[..., str]
Produce = Callable[..., None]


def test_a_record_has_all_its_parts(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic()
    produce(topic, "v", key="key", headers=[("h", b"1"), ("h", None)], timestamp=1_700_000_000_000)
    produce(topic, None, key="gone")
    produce(topic, b"", key=None)

    records = read(make_consumer(topic), 3)

    first = records[0]
    assert (first.topic, first.partition, first.offset) == (topic, 0, 0)
    assert (first.key, first.value) == (b"key", b"v")
    assert first.headers == (Header("h", b"1"), Header("h", None))
    assert first.timestamp == 1_700_000_000_000
    assert first.timestamp_type is TimestampType.CREATE_TIME
    assert first.leader_epoch == 0
    assert (first.serialized_key_size, first.serialized_value_size) == (3, 1)
    assert (records[1].key, records[1].value, records[1].serialized_value_size) == (
        b"gone",
        None,
        -1,
    )
    assert (records[2].key, records[2].value, records[2].serialized_key_size) == (None, b"", -1)


def test_the_brokers_time_is_given_where_the_topic_says_so(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic(config={"message.timestamp.type": "LogAppendTime"})
    produce(topic, "a", "b", timestamp=1_000_000_000_000)

    records = read(make_consumer(topic), 2)

    assert all(r.timestamp_type is TimestampType.LOG_APPEND_TIME for r in records)
    assert all(r.timestamp > 1_700_000_000_000 for r in records)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_read(
    make_consumer: Make, make_topic: MakeTopic, broker: Broker, codec: str
) -> None:
    topic = make_topic()
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "compression.type": codec,
            "linger.ms": 20,
            "log_level": 0,
        }
    )
    sent = [f"{n} {'x' * 500}" for n in range(200)]
    for value in sent:
        producer.produce(topic, value, partition=0)
    assert producer.flush(20) == 0
    consumer = make_consumer(group_id=None)
    consumer.assign([TopicPartition(topic, 0)])

    got = values(read(consumer, len(sent)))

    assert got == [value.encode() for value in sent]


def transactional_producer(broker: Broker, topic: str) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": f"id-{topic}", "log_level": 0}
    )
    producer.init_transactions(20)
    return producer


def test_read_committed_leaves_out_what_was_aborted(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce, broker: Broker
) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    producer = transactional_producer(broker, topic)
    for value, commit in (("kept", True), ("dropped", False), ("kept too", True)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        producer.flush(20)
        if commit:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
    await_ended_transactions(broker.bootstrap)
    produce(topic, "plain")
    everything = make_consumer(group_id=None)
    committed = make_consumer(group_id=None, isolation_level="read_committed")
    for consumer in (everything, committed):
        consumer.assign([partition])

    assert values(read(everything, 4)) == [b"kept", b"dropped", b"kept too", b"plain"]
    assert values(read(committed, 3)) == [b"kept", b"kept too", b"plain"]
    # Markers take offsets too, and are passed over.
    assert committed.position(partition) == 7


def test_read_committed_waits_for_an_open_transaction(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce, broker: Broker
) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    producer = transactional_producer(broker, topic)
    produce(topic, "before")
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    producer.flush(20)
    produce(topic, "after")
    consumer = make_consumer(group_id=None, isolation_level="read_committed")
    consumer.assign([partition])

    assert values(read(consumer, 1)) == [b"before"]
    assert consumer.poll(300) == {}
    assert consumer.end_offsets([partition]) == {partition: 1}
    producer.commit_transaction(20)
    assert values(read(consumer, 2)) == [b"open", b"after"]


def test_deserializers_see_bytes_and_never_null(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    class Upper:
        def deserialize(self, topic: str, headers: object, data: bytes) -> str:
            return f"{topic}:{data.decode().upper()}"

    topic = make_topic()
    produce(topic, json.dumps({"a": 1}), key="k")
    produce(topic, None)
    consumer = make_consumer(topic, key_deserializer=Upper(), value_deserializer=json.loads)

    records = read(consumer, 2)

    assert (records[0].key, records[0].value) == (f"{topic}:K", {"a": 1})
    assert (records[1].key, records[1].value) == (None, None)


def test_a_record_that_cannot_be_deserialized_is_named_and_can_be_passed_over(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic()
    partition = TopicPartition(topic, 0)
    produce(topic, "1", "2", "no number", "4")
    consumer = make_consumer(topic, value_deserializer=int)

    assert values(read(consumer, 2)) == [1, 2]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as raised:
            consumer.poll(5_000)
        assert (raised.value.topic_partition, raised.value.offset) == (partition, 2)
    consumer.seek(partition, 3)
    assert values(read(consumer, 1)) == [4]


def test_interceptors_see_records_and_commits(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    class Doubling(ConsumerInterceptor):
        commits: list[int] = []
        closed = 0

        def on_consume(
            self, records: dict[TopicPartition, list[ConsumerRecord]]
        ) -> dict[TopicPartition, list[ConsumerRecord]]:
            return {
                tp: [record._replace(value=record.value * 2) for record in of_partition]
                for tp, of_partition in records.items()
            }

        def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
            self.commits += [offset.offset for offset in offsets.values()]

        def close(self) -> None:
            type(self).closed += 1

    class Failing(ConsumerInterceptor):
        def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
            raise RuntimeError("no harm")

    topic = make_topic()
    produce(topic, "ab")
    consumer = make_consumer(
        topic, interceptor_classes=[Failing(), Doubling], enable_auto_commit=False
    )

    assert values(read(consumer, 1)) == [b"abab"]
    consumer.commit_sync()
    consumer.close()

    assert Doubling.commits == [1]
    assert Doubling.closed == 1


def test_a_batch_larger_than_the_fetch_size_is_still_read(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic()
    produce(topic, b"x" * 200_000, "small")
    consumer = make_consumer(topic, max_partition_fetch_bytes=1_000, fetch_max_bytes=1_000)

    assert [len(value) for value in values(read(consumer, 2))] == [200_000, 5]


def test_a_wakeup_ends_a_poll(make_consumer: Make, make_topic: MakeTopic) -> None:
    consumer = make_consumer(make_topic())
    poll_until(consumer.assignment, consumer)
    timer = threading.Timer(0.1, consumer.wakeup)
    timer.start()

    with pytest.raises(WakeupError):
        consumer.poll(20_000)

    timer.join()
    assert consumer.poll(0) == {}


def test_metrics_count_what_was_consumed(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic()
    produce(topic, "a", "b")
    consumer = make_consumer(topic)
    read(consumer, 2)

    metrics = consumer.metrics()

    assert metrics["consumer-fetch-manager-metrics"]["records-consumed-total"] == 2
    assert metrics[f"consumer-fetch-manager-metrics.{topic}.0"]["records-lag"] == 0
    assert metrics["consumer-coordinator-metrics"]["assigned-partitions"] == 1
