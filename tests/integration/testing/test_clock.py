"""A test moves the broker's clock, and clients that know nothing of it see what time does."""

import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaProducer

from kafkapy.testing import EmbeddedBroker, IsolationLevel
from tests.helpers.waiting import wait_until


@pytest.fixture(autouse=True)
def present(broker: EmbeddedBroker) -> Iterator[None]:
    """No test is left in the future of another."""
    with broker.rolled_back():
        yield


def test_a_member_whose_session_is_over_is_thrown_out_and_joins_again(
    broker: EmbeddedBroker, topic: str
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "sessions",
            "client.id": "sleeper",
            "heartbeat.interval.ms": 500,
            "session.timeout.ms": 45_000,
        }
    )
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(0.01) is None and consumer.assignment())
    assert broker.groups()["sessions"].members == ("sleeper",)

    broker.time.advance(seconds=46)

    assert broker.groups()["sessions"].state == "Empty"
    wait_until(
        lambda: consumer.poll(0.01) is None and broker.groups()["sessions"].members == ("sleeper",)
    )
    consumer.close()


def test_a_transaction_that_takes_too_long_is_aborted(broker: EmbeddedBroker, topic: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": topic,
            "transaction.timeout.ms": 60_000,
        }
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, "v")
    producer.flush(20)
    assert len(broker.records(topic)) == 1

    broker.time.advance(seconds=75)

    with pytest.raises(KafkaException):
        producer.commit_transaction(20)
    assert broker.records(topic, isolation=IsolationLevel.READ_COMMITTED) == []


def test_old_records_are_deleted(broker: EmbeddedBroker, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send(topic, b"v").get(20)
    broker.time.advance(days=6)
    assert len(broker.records(topic)) == 1

    broker.time.advance(days=2)

    assert broker.records(topic) == []
    producer.close()


def test_a_segment_is_rolled_when_it_is_old(broker: EmbeddedBroker) -> None:
    # By the broker's clock: a client's timestamps know nothing of a moved one.
    configs = {"segment.ms": "3600000", "message.timestamp.type": "LogAppendTime"}
    broker.create_topic("rolled", configs=configs)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("rolled", b"v").get(20)

    broker.time.advance(hours=2)

    producer.send("rolled", b"v").get(20)
    producer.close()
    assert len(list((broker.log_dir / "rolled-0").glob("*.log"))) == 2


def test_a_delayed_request_is_answered_when_its_time_has_come(
    broker: EmbeddedBroker, topic: str
) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, request_timeout_ms=30_000)
    fault = broker.faults.on("Produce", topic=topic).delay(ms=3_600_000)
    future = producer.send(topic, b"v")
    wait_until(lambda: fault.fired)
    assert broker.records(topic) == []
    assert not future.is_done

    broker.time.advance(hours=1)

    assert future.get(20).offset == 0
    assert len(broker.records(topic)) == 1
    producer.close()


def test_both_forms_of_a_broker_have_a_clock(either_broker) -> None:
    before_ms = either_broker.time.milliseconds()

    either_broker.time.advance(minutes=1, milliseconds=5)

    assert 60_005 <= either_broker.time.milliseconds() - before_ms < 120_000
    with pytest.raises(ValueError, match="cannot be set back, by 1000 ms"):
        either_broker.time.advance(seconds=-1)


def test_advancing_while_clients_work_disturbs_nobody(broker: EmbeddedBroker, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    stop = threading.Event()
    sent: list[object] = []

    def work() -> None:
        while not stop.is_set():
            sent.append(producer.send(topic, b"v").get(20))

    worker = threading.Thread(target=work)
    worker.start()
    for _ in range(20):
        broker.time.advance(seconds=1)
    stop.set()
    worker.join()

    assert len(broker.records(topic)) == len(sent)
    producer.close()
