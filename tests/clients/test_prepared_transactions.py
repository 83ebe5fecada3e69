"""Transactions that are prepared by one program and ended by another."""

import uuid

import pytest

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.producer import PreparedTransaction
from kafkapy.common.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    RecordTooLargeError,
)
from tests.clients.admins import admin_client
from tests.clients.producers import producer_of, values_of
from tests.compat.brokers import Broker

VALUES = [b"%d" % i for i in range(3)]


def prepare(
    broker: Broker, topic: str, *values: bytes, transactional_id: str | None = None
) -> PreparedTransaction:
    transactional_id = transactional_id or f"prepared-{uuid.uuid4().hex}"
    with producer_of(broker, transactional_id=transactional_id, linger_ms=60_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value)
        return producer.prepare_transaction()


@pytest.mark.parametrize(("is_commit", "seen"), [(True, VALUES), (False, [])])
def test_prepared_transaction_outlives_its_producer_until_another_ends_it(
    broker: Broker, make_topic, is_commit: bool, seen: list[bytes]
) -> None:
    topic = make_topic()

    prepared = prepare(broker, topic, *VALUES)

    assert values_of(broker, topic) == []
    assert values_of(broker, topic, isolation="read_uncommitted") == VALUES
    with admin_client(broker) as admin:
        for _ in range(2):
            admin.end_transactions([prepared], is_commit=is_commit)
        with pytest.raises(InvalidTxnStateError):
            admin.end_transactions([prepared], is_commit=not is_commit)
    assert values_of(broker, topic) == seen


def test_next_producer_of_the_id_aborts_what_was_prepared(broker: Broker, make_topic) -> None:
    topic = make_topic()
    first = prepare(broker, topic, b"lost")
    second = prepare(broker, topic, b"kept", transactional_id=first.transactional_id)

    with admin_client(broker) as admin:
        results = admin.end_transactions([first], is_commit=True, raise_errors=False)
        error = results.errors[first.transactional_id]
        assert isinstance(error, ProducerFencedError | InvalidProducerEpochError)
        admin.end_transactions([second], is_commit=True)

    assert values_of(broker, topic) == [b"kept"]


def test_prepared_transaction_takes_no_more_and_its_producer_may_still_commit(
    broker: Broker, make_topic
) -> None:
    topic = make_topic()

    with producer_of(broker, transactional_id=f"prepared-{uuid.uuid4().hex}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"v")
        producer.prepare_transaction()
        with pytest.raises(IllegalStateError, match="within a transaction"):
            producer.send(topic, b"too late")
        producer.commit_transaction()

    assert values_of(broker, topic) == [b"v"]


def test_failed_record_is_told_when_preparing(broker: Broker, make_topic) -> None:
    topic = make_topic(config={"max.message.bytes": "1000"})

    with producer_of(broker, transactional_id=f"prepared-{uuid.uuid4().hex}") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        future = producer.send(topic, bytes(5_000))
        with pytest.raises(KafkaError):
            producer.prepare_transaction()

    assert isinstance(future.exception, RecordTooLargeError)
    assert values_of(broker, topic) == []
