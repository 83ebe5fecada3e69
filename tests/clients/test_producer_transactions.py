"""Transactions of a producer, as consumers that read only what is committed see them."""

import uuid

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as TheirPartition

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.consumer import ConsumerGroupMetadata, OffsetAndMetadata
from kafkapy.clients.consumer.consumer_errors import CommitFailedError
from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.errors import (
    InvalidProducerEpochError,
    KafkaError,
    ProducerFencedError,
    RecordTooLargeError,
)
from kafkapy.common.types import TopicPartition
from tests.clients.producers import producer_of, values_of
from tests.compat.brokers import Broker
from tests.helpers.ended_transactions import await_ended_transactions


def transactional(broker: Broker, transactional_id: str | None = None, **more) -> KafkaProducer:
    producer = producer_of(
        broker, transactional_id=transactional_id or f"txn-{uuid.uuid4().hex}", **more
    )
    producer.init_transactions()
    return producer


def committed_offset(broker: Broker, group: str, partition: TopicPartition) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        (found,) = consumer.committed([TheirPartition(*partition)], timeout=20)
        return found.offset
    finally:
        consumer.close()


def test_committed_records_are_read_and_aborted_ones_are_not(broker: Broker, make_topic) -> None:
    topic = make_topic(partitions=2)

    with transactional(broker) as producer:
        for round_ in range(4):
            producer.begin_transaction()
            for partition in (0, 1):
                producer.send(topic, b"%d" % round_, partition=partition)
            if round_ % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()

    for partition in (0, 1):
        assert values_of(broker, topic, partition=partition) == [b"0", b"2"]
        assert b"3" not in values_of(broker, topic, partition=partition)


def test_commit_sends_what_lingers(broker: Broker, make_topic) -> None:
    topic = make_topic()

    with transactional(broker, linger_ms=60_000) as producer:
        producer.begin_transaction()
        futures = [producer.send(topic, b"%d" % i) for i in range(10)]
        producer.commit_transaction()
        assert all(future.succeeded() for future in futures)

    assert values_of(broker, topic) == [b"%d" % i for i in range(10)]


def test_abort_fails_what_was_not_sent(broker: Broker, make_topic) -> None:
    topic = make_topic()

    with transactional(broker, linger_ms=60_000) as producer:
        producer.begin_transaction()
        future = producer.send(topic, b"v")
        producer.abort_transaction()
        with pytest.raises(KafkaError, match="abort"):
            future.get(10)
        producer.begin_transaction()
        producer.send(topic, b"next")
        producer.commit_transaction()

    assert values_of(broker, topic) == [b"next"]


def test_empty_transactions_end(broker: Broker) -> None:
    with transactional(broker) as producer:
        producer.begin_transaction()
        producer.commit_transaction()
        producer.begin_transaction()
        producer.abort_transaction()


def test_offsets_are_committed_with_the_transaction(broker: Broker, make_topic) -> None:
    source, target = make_topic(), make_topic()
    group = f"group-{uuid.uuid4().hex}"
    partition = TopicPartition(source, 0)

    with transactional(broker) as producer:
        producer.begin_transaction()
        producer.send(target, b"1")
        producer.send_offsets_to_transaction({partition: OffsetAndMetadata(5)}, group)
        producer.abort_transaction()
        assert committed_offset(broker, group, partition) < 0
        producer.begin_transaction()
        producer.send(target, b"2")
        producer.send_offsets_to_transaction(
            {partition: OffsetAndMetadata(7, "note")}, ConsumerGroupMetadata(group)
        )
        producer.send_offsets_to_transaction({}, group)
        producer.commit_transaction()

    assert committed_offset(broker, group, partition) == 7
    assert values_of(broker, target) == [b"2"]


def test_offsets_of_a_member_that_is_gone_fail_the_transaction(broker: Broker, make_topic) -> None:
    partition = TopicPartition(make_topic(), 0)
    gone = ConsumerGroupMetadata(f"group-{uuid.uuid4().hex}", 3, "nobody")

    with transactional(broker) as producer:
        producer.begin_transaction()
        with pytest.raises(CommitFailedError):
            producer.send_offsets_to_transaction({partition: OffsetAndMetadata(1)}, gone)
        with pytest.raises(KafkaError):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.commit_transaction()


@pytest.mark.parametrize(
    ("offset", "group", "refusal"),
    [
        (5, "group", TypeError),
        (OffsetAndMetadata(-1), "group", ValueError),
        (OffsetAndMetadata(2**63), "group", ValueError),
        (OffsetAndMetadata(5), None, TypeError),
    ],
)
def test_offsets_that_cannot_be_sent_are_refused_and_the_transaction_goes_on(
    broker: Broker, make_topic, offset: object, group: object, refusal: type[Exception]
) -> None:
    topic = make_topic()
    with transactional(broker, max_block_ms=5_000) as producer:
        producer.begin_transaction()
        producer.send(topic, b"v")
        with pytest.raises(refusal):
            producer.send_offsets_to_transaction({TopicPartition(topic, 0): offset}, group)
        producer.commit_transaction()

    assert values_of(broker, topic) == [b"v"]


def test_newer_producer_of_the_same_id_fences_the_older(broker: Broker, make_topic) -> None:
    topic = make_topic()
    transactional_id = f"txn-{uuid.uuid4().hex}"

    with transactional(broker, transactional_id) as older:
        older.begin_transaction()
        older.send(topic, b"older").get(10)
        with transactional(broker, transactional_id) as newer:
            newer.begin_transaction()
            newer.send(topic, b"newer")
            newer.commit_transaction()
        # Until its markers are written, Apache Kafka may find the late record in no transaction.
        await_ended_transactions(broker.bootstrap)
        older.send(topic, b"too late")
        with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
            older.commit_transaction()
        with pytest.raises(ProducerFencedError):
            older.abort_transaction()
        with pytest.raises(ProducerFencedError):
            older.begin_transaction()

    assert values_of(broker, topic) == [b"newer"]


def test_failed_record_fails_the_commit_and_abort_recovers(broker: Broker, make_topic) -> None:
    topic = make_topic(config={"max.message.bytes": "2000"})

    with transactional(broker) as producer:
        producer.begin_transaction()
        producer.send(topic, b"good")
        with pytest.raises(RecordTooLargeError):
            producer.send(topic, b"x" * 5000).get(10)
        with pytest.raises(KafkaError, match="error state"):
            producer.commit_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"after")
        producer.commit_transaction()

    assert values_of(broker, topic) == [b"after"]


def test_close_aborts_the_open_transaction(broker: Broker, make_topic) -> None:
    topic = make_topic()

    with transactional(broker) as producer:
        producer.begin_transaction()
        producer.send(topic, b"v").get(10)

    assert values_of(broker, topic) == []
    assert values_of(broker, topic, isolation="read_uncommitted") == [b"v"]


def test_steps_out_of_order_are_refused(broker: Broker, make_topic) -> None:
    topic = make_topic()
    with producer_of(broker) as plain, pytest.raises(IllegalStateError, match="transactional_id"):
        plain.begin_transaction()
    with producer_of(broker, transactional_id=f"txn-{uuid.uuid4().hex}") as producer:
        with pytest.raises(IllegalStateError):
            producer.begin_transaction()
        with pytest.raises(IllegalStateError, match="init_transactions"):
            producer.send(topic, b"v")
    with transactional(broker) as producer:
        with pytest.raises(IllegalStateError, match="within a transaction"):
            producer.send(topic, b"v")
        with pytest.raises(IllegalStateError):
            producer.commit_transaction()
        with pytest.raises(IllegalStateError, match="within a transaction"):
            producer.send_offsets_to_transaction(
                {TopicPartition(topic, 0): OffsetAndMetadata(1)}, "group"
            )
        producer.begin_transaction()
        with pytest.raises(IllegalStateError):
            producer.begin_transaction()
        with pytest.raises(IllegalStateError):
            producer.init_transactions()
