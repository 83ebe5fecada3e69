"""A broker goes back to a checkpoint as if nothing had happened since."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkapy.common.errors import KafkaError
from kafkapy.testing import BrokerHandle, EmbeddedBroker, IsolationLevel
from tests.faults.small_disk import small_disk
from tests.helpers.ended_transactions import await_ended_transactions
from tests.helpers.waiting import wait_until
from tests.integration.testing.broker_view import RealClient

TOPICS = ("a", "b", "c")
topics = st.sampled_from(TOPICS)
groups = st.sampled_from(("g", "h"))
operations = st.one_of(
    st.tuples(st.just("produce"), topics, st.integers(1, 3)),
    st.tuples(st.just("create"), topics),
    st.tuples(st.just("delete"), topics),
    st.tuples(st.just("grow"), topics),
    st.tuples(st.just("alter"), topics, st.integers(1_000_000, 2_000_000)),
    st.tuples(st.just("commit"), groups, topics, st.integers(0, 9)),
    st.tuples(st.just("delete_group"), groups),
    st.tuples(st.just("delete_records"), topics, st.integers(0, 3)),
    st.tuples(st.just("transact"), topics, st.integers(1, 3)),
    st.tuples(st.just("abort"), topics, st.integers(1, 3)),
    st.tuples(st.just("advance"), st.integers(1, 100)),
)


def perform(broker: BrokerHandle, client: RealClient, operation: tuple) -> None:
    name, *arguments = operation
    known = broker.topics()
    if name == "advance":
        broker.time.advance(seconds=arguments[0])
        return
    if name not in ("create", "delete_group"):
        topic = arguments[1] if name == "commit" else arguments[0]
        if topic not in known:
            return
    match name:
        case "transact":
            client.transact(*arguments, commit=True)
        case "abort":
            client.transact(*arguments, commit=False)
        case "delete":
            client.delete(*arguments)
            # The client is told before the last trace of the topic is gone.
            wait_until(lambda: not has_traces(broker, arguments[0]))
        case _:
            getattr(client, name)(*arguments)


def has_traces(broker: BrokerHandle, topic: str) -> bool:
    committed = {name for view in broker.groups().values() for name, _ in view.offsets}
    return topic in committed or any(broker.log_dir.glob(f"{topic}-?"))


@pytest.fixture(scope="module")
def shared() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@settings(
    derandomize=True,
    deadline=None,
    max_examples=8,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    before=st.lists(operations, min_size=3, max_size=6),
    after=st.lists(operations, min_size=3, max_size=6),
)
def test_whatever_clients_do_is_undone(shared: EmbeddedBroker, before, after) -> None:
    with shared.rolled_back():
        client = RealClient(shared)
        for topic in TOPICS[:2]:
            client.create(topic)
        for operation in before:
            perform(shared, client, operation)
        seen = client.view()
        checkpoint = shared.checkpoint()

        for operation in after:
            perform(shared, client, operation)
        shared.rollback(checkpoint)

        assert RealClient(shared).view() == seen
        shared.discard(checkpoint)
    assert shared.topics() == {}


def test_going_back_works_in_a_process_too(either_broker: BrokerHandle) -> None:
    client = RealClient(either_broker)
    client.create("a")
    client.produce("a", 2)
    client.commit("g", "a", 1)
    seen = client.view()

    with either_broker.rolled_back():
        client.produce("a", 1)
        client.delete("a")
        client.create("b")
        client.commit("g", "b", 3)

    # Another client: librdkafka does not find a coordinator again once it has lost its connection.
    assert RealClient(either_broker).view() == seen


def test_sequence_numbers_and_producer_ids_go_back(broker: EmbeddedBroker, topic: str) -> None:
    def first_producer_id() -> int:
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True}
        )
        producer.produce(topic, "v")
        assert producer.flush(20) == 0
        (request,) = broker.requests("Produce", topic=topic)
        batch = bytes(request.body.topic_data[0].partition_data[0].records)
        return int.from_bytes(batch[43:51])

    ids = []
    for _ in range(2):
        with broker.rolled_back():
            broker.clear_requests()
            ids.append(first_producer_id())

    assert broker.records(topic) == []
    assert ids[1] - ids[0] in (0, 1000), "a restart takes the next block of ids"


def test_an_open_transaction_is_open_again(broker: EmbeddedBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, "v")
    producer.flush(20)
    checkpoint = broker.checkpoint()
    producer.commit_transaction(20)
    await_ended_transactions(broker.bootstrap_servers)
    assert len(broker.records(topic, isolation=IsolationLevel.READ_COMMITTED)) == 1

    broker.rollback(checkpoint)

    assert broker.records(topic, isolation=IsolationLevel.READ_COMMITTED) == []
    assert len(broker.records(topic)) == 1
    successor = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    successor.init_transactions(20)
    assert broker.records(topic, isolation=IsolationLevel.READ_COMMITTED) == []
    broker.discard(checkpoint)


def test_members_of_a_group_come_back_with_a_full_session(
    broker: EmbeddedBroker, topic: str
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "client.id": "member",
            "session.timeout.ms": 45_000,
        }
    )
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(0.01) is None and consumer.assignment())
    checkpoint = broker.checkpoint()
    consumer.close()
    assert broker.groups()[topic].members == ()

    broker.rollback(checkpoint)

    assert broker.groups()[topic].members == ("member",)
    broker.time.advance(seconds=44)
    assert broker.groups()[topic].members == ("member",)
    broker.time.advance(seconds=2)
    assert broker.groups()[topic].members == ()
    broker.discard(checkpoint)


def test_the_clock_goes_back_and_so_do_records_it_had_deleted(
    broker: EmbeddedBroker, topic: str
) -> None:
    client = RealClient(broker)
    client.produce(topic, 3)
    before_ms = broker.time.milliseconds()

    with broker.rolled_back():
        broker.time.advance(days=30)
        assert broker.records(topic) == []

    assert len(broker.records(topic)) == 3
    assert broker.time.milliseconds() - before_ms < 60_000


def test_a_checkpoint_at_another_time_goes_back_to_that_time(broker: EmbeddedBroker) -> None:
    with broker.rolled_back():
        pass  # now the broker is as at a checkpoint, but for its clock
    broker.time.advance(hours=1)
    moved_ms = broker.time.milliseconds()

    with broker.rolled_back():
        broker.time.advance(hours=1)

    assert 0 <= broker.time.milliseconds() - moved_ms < 60_000


def test_a_checkpoint_of_compacted_records_goes_back_to_them() -> None:
    configs = {
        "cleanup.policy": "compact",
        "segment.bytes": "500",
        "min.cleanable.dirty.ratio": "0.01",
    }
    with EmbeddedBroker({"log.cleaner.backoff.ms": "500"}) as broker:
        broker.create_topic("compacted", configs=configs)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(20):
            producer.produce("compacted", str(number), "key")
            assert producer.flush(20) == 0
        with broker.rolled_back():
            pass  # the broker that follows has yet to compact
        wait_until(lambda: len(broker.records("compacted")) < 10)
        seen = broker.records("compacted")

        with broker.rolled_back():
            pass

        assert broker.records("compacted") == seen


def test_closed_segments_survive_their_deletion(broker: EmbeddedBroker) -> None:
    broker.create_topic("rolled", configs={"segment.bytes": "1000"})
    client = RealClient(broker)
    for _ in range(20):
        client.produce("rolled", 3)
    seen = client.view()
    assert len(list((broker.log_dir / "rolled-0").glob("*.log"))) >= 3

    for _ in range(2):
        with broker.rolled_back():
            client.delete_records("rolled", 50)
            client.produce("rolled", 3)
            client.delete("rolled")
            broker.time.advance(minutes=5)

        assert RealClient(broker).view() == seen


def test_a_checkpoint_without_room_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path / "disk", size_kib=2000) as disk:
        monkeypatch.setenv("TMPDIR", str(disk.path))
        monkeypatch.setattr(tempfile, "tempdir", None)
        with EmbeddedBroker() as broker:
            broker.create_topic("x")
            producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
            producer.produce("x", bytes(900_000))
            assert producer.flush(20) == 0
            (disk.path / "filler").write_bytes(bytes(500_000))
            before = set(broker.log_dir.parent.iterdir())

            with pytest.raises(KafkaError, match=r"cannot be checkpointed: .*No space left"):
                broker.checkpoint()

            assert set(broker.log_dir.parent.iterdir()) == before
            disk.resize(size_kib=10_000)
            with broker.rolled_back():
                broker.delete_topic("x")
            assert len(broker.records("x")) == 1


def test_checkpoints_nest_and_can_be_used_in_any_order(broker: EmbeddedBroker) -> None:
    states = []
    for name in ("one", "two", "three"):
        broker.create_topic(name)
        states.append((broker.checkpoint(), set(broker.topics())))

    for checkpoint, expected in (states[1], states[2], states[0], states[2], states[0]):
        broker.rollback(checkpoint)
        assert set(broker.topics()) == expected
    for checkpoint, _ in states:
        broker.discard(checkpoint)

    with pytest.raises(KafkaError, match="was discarded"):
        broker.rollback(states[0][0])


def test_a_checkpoint_of_another_broker_is_refused() -> None:
    with EmbeddedBroker() as one, EmbeddedBroker() as other:
        one.create_topic("x")
        checkpoint, same_number = one.checkpoint(), other.checkpoint()
        assert checkpoint.number == same_number.number

        with pytest.raises(KafkaError, match="is of another broker"):
            one.rollback(same_number)
        one.discard(same_number)

        one.rollback(checkpoint)
        assert one.topics() == {"x": 1}


def test_clients_that_live_on_reconnect(broker: EmbeddedBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

    with broker.rolled_back():
        producer.produce(topic, "inside")
        assert producer.flush(20) == 0

    producer.produce(topic, "outside")
    assert producer.flush(20) == 0
    assert [record.value for record in broker.records(topic)] == [b"outside"]


def test_a_producer_fenced_since_is_not_fenced_any_more(broker: EmbeddedBroker, topic: str) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic}
    first = Producer(settings)
    first.init_transactions(20)

    with broker.rolled_back():
        Producer(settings).init_transactions(20)
        first.begin_transaction()
        first.produce(topic, "v")
        with pytest.raises(KafkaException):
            first.commit_transaction(20)

    third = Producer(settings)
    third.init_transactions(20)
    third.begin_transaction()
    third.produce(topic, "v")
    third.commit_transaction(20)
    await_ended_transactions(broker.bootstrap_servers)
    assert len(broker.records(topic, isolation=IsolationLevel.READ_COMMITTED)) == 1
