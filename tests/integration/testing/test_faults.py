"""Faults as real clients meet them."""

import threading

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer

from kafkapy.common.errors import KafkaError as OwnKafkaError
from kafkapy.testing import BrokerHandle, EmbeddedBroker
from tests.helpers.waiting import wait_until


@pytest.fixture
def producer(broker: EmbeddedBroker):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=10)
    yield producer
    producer.close()


def confluent_producer(broker: BrokerHandle, **settings: object) -> Producer:
    return Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "retry.backoff.ms": 10, **settings}
    )


def test_the_third_produce_is_refused_and_the_client_sends_it_again(
    broker: EmbeddedBroker, topic: str, producer: KafkaProducer
) -> None:
    fault = broker.faults.on("Produce", topic=topic).nth(3).error("NOT_LEADER_OR_FOLLOWER")

    for number in range(4):
        producer.send(topic, b"%d" % number).get(20)

    assert [r.value for r in broker.records(topic)] == [b"0", b"1", b"2", b"3"]
    assert fault.fired == 1
    errors = [r.errors for r in broker.requests("Produce", topic=topic)]
    assert errors == [(), (), ("NOT_LEADER_OR_FOLLOWER",), (), ()]
    broker.faults.assert_all_fired()


@pytest.mark.parametrize(("idempotent", "stored"), [(True, 1), (False, 2)])
def test_an_answer_lost_after_the_append_is_retried(
    broker: EmbeddedBroker, topic: str, idempotent: bool, stored: int
) -> None:
    broker.faults.on("Produce", topic=topic).drop_response()
    producer = confluent_producer(broker, **{"enable.idempotence": idempotent})

    producer.produce(topic, "v")

    assert producer.flush(20) == 0
    assert len(broker.records(topic)) == stored
    lost, again = broker.requests("Produce", topic=topic)
    assert (lost.outcome, lost.details) == ("disconnected", f"{topic}-0 from offset 0")
    assert again.outcome == "answered"


def test_a_connection_closed_before_the_append_costs_nothing(
    broker: EmbeddedBroker, topic: str
) -> None:
    broker.faults.on("Produce", topic=topic).times(2).disconnect()
    producer = confluent_producer(broker)

    producer.produce(topic, "v")

    assert producer.flush(20) == 0
    assert len(broker.records(topic)) == 1


def test_an_error_that_cannot_be_retried_reaches_the_application(
    broker: EmbeddedBroker, topic: str
) -> None:
    broker.faults.on("Produce", topic=topic).always().error("TOPIC_AUTHORIZATION_FAILED")
    errors: list[KafkaError | None] = []
    producer = confluent_producer(broker)

    producer.produce(topic, "v", on_delivery=lambda error, _: errors.append(error))

    assert producer.flush(20) == 0
    assert [error.code() for error in errors if error] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    assert broker.records(topic) == []


def test_an_error_without_acknowledgement_closes_the_connection(
    broker: EmbeddedBroker, topic: str
) -> None:
    fault = broker.faults.on("Produce", topic=topic).error("NOT_LEADER_OR_FOLLOWER")
    producer = confluent_producer(broker, acks=0)

    producer.produce(topic, "v")
    producer.flush(20)

    wait_until(lambda: fault.fired)
    (request,) = broker.requests("Produce", topic=topic)
    assert request.outcome == "disconnected"


def test_a_fetch_gets_the_error_for_one_topic_and_its_session_goes_on(
    broker: EmbeddedBroker, topic: str
) -> None:
    other = f"{topic}-2"
    broker.create_topic(other)
    producer = confluent_producer(broker)
    for name in (topic, other):
        producer.produce(name, "v")
    producer.flush(20)
    fault = broker.faults.on("Fetch", topic=topic).times(2).error("NOT_LEADER_OR_FOLLOWER")
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "fetch.wait.max.ms": 20,
        }
    )
    consumer.assign([TopicPartition(name, 0, 0) for name in (topic, other)])

    received = [message.topic() for message in consumer.consume(2, timeout=20)]

    consumer.close()
    assert sorted(received) == [topic, other]
    assert fault.fired == 2


def test_a_commit_is_refused_while_the_group_rebalances(broker: EmbeddedBroker, topic: str) -> None:
    broker.faults.on("OffsetCommit", topic=topic).error("REBALANCE_IN_PROGRESS")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic})

    with pytest.raises(KafkaException) as refused:
        consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)

    assert refused.value.args[0].code() == KafkaError.REBALANCE_IN_PROGRESS
    assert broker.committed(topic, topic) == {}
    consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
    assert broker.committed(topic, topic) == {0: 5}
    consumer.close()


def test_a_torn_write_is_cut_off_by_the_next_start() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("x")
        producer = confluent_producer(broker, **{"enable.idempotence": True})
        producer.produce("x", "whole")
        assert producer.flush(20) == 0
        broker.faults.storage(topic="x").torn_write(after_bytes=20)
        producer.produce("x", "torn")
        wait_until(lambda: broker.failure)
        assert broker.failure == "All directories of log.dirs have failed"
        assert (broker.log_dir / "x-0" / f"{0:020d}.log").stat().st_size > 80

        broker.restart(clean=False)

        assert broker.failure is None
        assert producer.flush(20) == 0
        assert [record.value for record in broker.records("x")] == [b"whole", b"torn"]


def test_a_checkpoint_leaves_faults_of_storage_for_clients() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("x")
        producer = confluent_producer(broker, **{"enable.idempotence": True})
        producer.produce("x", "before")
        assert producer.flush(20) == 0
        fault = broker.faults.storage(topic="x").torn_write(after_bytes=20)

        checkpoint = broker.checkpoint()

        assert not fault.fired
        producer.produce("x", "torn")
        wait_until(lambda: broker.failure)
        assert fault.fired == 1
        with pytest.raises(OwnKafkaError, match="cannot be checkpointed: All directories"):
            broker.checkpoint()
        broker.rollback(checkpoint)
        assert [record.value for record in broker.records("x")] == [b"before"]


@pytest.mark.parametrize("say", [lambda s: s.disk_full(), lambda s: s.fsync_error()])
def test_a_disk_that_fails_is_taken_offline_and_a_rollback_heals_it(say) -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("x", configs={"flush.messages": "1"})
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retries=0)
        producer.send("x", b"before").get(20)

        with broker.rolled_back():
            fault = say(broker.faults.storage(topic="x"))
            with pytest.raises(Exception, match=r"KafkaStorageError|Timeout|NotLeader|Unknown"):
                producer.send("x", b"lost").get(20)
            assert fault.fired
            wait_until(lambda: broker.failure)

        assert broker.failure is None
        assert [record.value for record in broker.records("x")] == [b"before"]
        producer.close(1)


def test_faults_work_in_a_process_too_with_predicates_of_the_test(
    either_broker: BrokerHandle,
) -> None:
    either_broker.create_topic("p")
    here = threading.get_ident()
    asked: list[tuple[bool, int]] = []

    def is_large(request) -> bool:
        asked.append((threading.get_ident() == here, request.size_in_bytes))
        return bool(request.size_in_bytes > 1000)

    fault = either_broker.faults.on("Produce", topic="p").when(is_large).error("MESSAGE_TOO_LARGE")
    producer = KafkaProducer(bootstrap_servers=either_broker.bootstrap_servers)
    producer.send("p", b"small").get(20)

    with pytest.raises(Exception, match=r"MessageSizeTooLarge|MESSAGE_TOO_LARGE|too large"):
        producer.send("p", bytes(2000)).get(20)

    producer.close()
    assert fault.fired == 1
    assert len(asked) == 2
    with pytest.raises(AssertionError, match="never struck: Heartbeat: disconnect"):
        either_broker.faults.on("Heartbeat").disconnect()
        either_broker.faults.assert_all_fired()
    either_broker.faults.clear()


def test_a_predicate_that_fails_costs_a_connection_only(either_broker: BrokerHandle) -> None:
    either_broker.create_topic("failing")
    calls = 0

    def fails_at_first(_: object) -> bool:
        nonlocal calls
        calls += 1
        if calls <= 6:  # more often than there are threads to ask it
            pytest.fail("from a predicate")
        return False

    either_broker.faults.on("Produce", topic="failing").when(fails_at_first).disconnect()
    producer = KafkaProducer(
        bootstrap_servers=either_broker.bootstrap_servers, retries=20, retry_backoff_ms=10
    )

    assert producer.send("failing", b"v").get(20).offset == 0

    producer.close()
    assert calls == 7
    either_broker.faults.clear()
