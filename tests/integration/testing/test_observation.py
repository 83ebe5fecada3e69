"""What a test can see of what its clients did."""

import threading
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from kafkapy.testing import BrokerHandle, EmbeddedBroker, IsolationLevel
from kafkapy.testing.topic_reader import TopicReader
from kafkapy.testing.wire_client import WireClient
from tests.helpers.ended_transactions import await_ended_transactions


@pytest.fixture
def producer(broker: EmbeddedBroker):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="sender")
    yield producer
    producer.close()


def test_requests_are_recorded_with_what_became_of_them(
    broker: EmbeddedBroker, topic: str, producer: KafkaProducer
) -> None:
    producer.send(topic, b"v").get(20)

    (request,) = broker.requests("Produce", topic=topic)

    assert (request.client_id, request.api, request.outcome) == ("sender", "Produce", "answered")
    assert request.errors == ()
    assert request.details == f"{topic}-0 from offset 0"
    assert request.latency_ms is not None
    assert request.body is not None
    assert request.body.topic_data[0].name == topic
    assert request in broker.requests(client_id="sender")


def test_commits_of_a_group_are_seen(broker: EmbeddedBroker, topic: str, producer) -> None:
    for value in (b"a", b"b"):
        producer.send(topic, value).get(20)
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        group_id="seen",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    while consumer.position(partition) < 2:
        consumer.poll(100)

    consumer.commit()

    assert broker.committed("seen", topic) == {0: 2}
    assert broker.committed("seen", "other") == broker.committed("nobody", topic) == {}
    assert broker.groups()["seen"].offsets == {(topic, 0): 2}
    (commit,) = broker.requests("OffsetCommit", topic=topic)
    assert commit.groups == {"seen"}
    assert {r.api for r in broker.requests(topic=topic)} >= {"Fetch", "Produce", "OffsetCommit"}
    consumer.close()


def test_the_topic_of_an_incremental_fetch_is_known(
    broker: EmbeddedBroker, topic: str, producer: KafkaProducer
) -> None:
    producer.send(topic, b"v").get(20)
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.subscribe([topic])

    assert consumer.poll(20).value() == b"v"
    consumer.close()

    fetches = [r for r in broker.requests("Fetch", topic=topic) if r.client_id == "rdkafka"]
    assert fetches
    assert all(fetch.topics == {topic} for fetch in fetches)


def test_expected_records_are_waited_for(
    broker: EmbeddedBroker, topic: str, producer: KafkaProducer
) -> None:
    def later() -> None:
        producer.send(topic, b"other", b"k").get(20)
        for _ in range(2):
            producer.send(topic, b"v", b"k", headers=[("h", b"1")]).get(20)

    timer = threading.Timer(0.1, later)
    timer.start()
    found = broker.expect(topic, key="k", value=b"v", headers={"h": "1"}, count=2, within=20)
    timer.join()

    assert [record.offset for record in found] == [1, 2]
    assert len(broker.expect(topic, value=lambda value: value in (b"v", b"other"))) == 3
    assert broker.expect(topic)[0].key == b"k"


def test_an_expectation_may_come_before_the_topic(broker: EmbeddedBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    timer = threading.Timer(0.1, lambda: producer.produce("late", "v") or producer.flush(20))
    timer.start()

    assert broker.expect("late", value="v", within=20)[0].offset == 0
    timer.join()


def test_an_expectation_outlasts_restarts(broker: EmbeddedBroker, topic: str) -> None:
    def restart() -> None:
        for _ in range(5):
            broker.restart()
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce(topic, "v")
        producer.flush(20)

    worker = threading.Thread(target=restart)
    worker.start()

    assert broker.expect(topic, value="v", within=20)[0].offset == 0
    worker.join()


def test_an_expectation_outlasts_its_topic(broker: EmbeddedBroker) -> None:
    broker.create_topic("gone")
    client = WireClient(("127.0.0.1", int(broker.bootstrap_servers.rpartition(":")[2])))
    reader = TopicReader(client, "gone", IsolationLevel.READ_UNCOMMITTED)
    assert reader.poll() == []

    broker.delete_topic("gone")

    assert reader.poll() == []
    client.close()


def test_a_failed_expectation_tells_what_happened(
    broker: EmbeddedBroker, topic: str, producer: KafkaProducer
) -> None:
    broker.faults.on("Produce", topic=topic).error("NOT_LEADER_OR_FOLLOWER")
    producer.send(topic, b"v", b"k").get(20)

    with pytest.raises(AssertionError) as failure:
        broker.expect(topic, key="nobody", within=0.1)

    lines = str(failure.value).splitlines()
    assert lines[0] == f"{topic} has 0 of 1 records with key 'nobody' after 0.1 s"
    produced = [line for line in lines if "Produce v" in line]
    assert "NOT_LEADER_OR_FOLLOWER; fault: Produce topic" in produced[0]
    assert f"{topic}-0 from offset 0; answered" in produced[1]
    assert f"  {topic}-0@0: b'k' = b'v'" in lines
    assert any(line.startswith("groups") for line in lines)


def test_aborted_records_are_hidden_from_whoever_asks_for_committed_ones(
    broker: EmbeddedBroker, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(20)
    for value, commit in (("a", True), ("b", False), ("c", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(20)
        (producer.commit_transaction if commit else producer.abort_transaction)(20)
    await_ended_transactions(broker.bootstrap_servers)

    committed = broker.records(topic, isolation=IsolationLevel.READ_COMMITTED)

    assert [record.value for record in committed] == [b"a", b"c"]
    assert [record.value for record in broker.records(topic)] == [b"a", b"b", b"c"]


def test_an_isolation_that_is_none_is_named(broker: EmbeddedBroker) -> None:
    isolation: Any = "read_committed"

    with pytest.raises(ValueError, match="'read_committed' is not a valid IsolationLevel"):
        broker.records("x", isolation=isolation)


def test_a_broker_process_tells_as_much(either_broker: BrokerHandle) -> None:
    either_broker.create_topic("told")
    producer = KafkaProducer(bootstrap_servers=either_broker.bootstrap_servers, client_id="s")
    producer.send("told", b"v").get(20)
    producer.close()

    (request,) = either_broker.requests("Produce", topic="told", client_id="s")

    assert request.details == "told-0 from offset 0"
    either_broker.clear_requests()
    assert either_broker.requests() == []


def test_the_kit_s_own_requests_are_not_listed(broker: EmbeddedBroker) -> None:
    broker.clear_requests()

    broker.groups()
    broker.records("nothing")
    broker.create_topic("own")

    assert broker.requests() == []
