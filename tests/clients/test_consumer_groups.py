"""Groups: partitions shared, handed over and taken back, also with members of other clients."""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection

import pytest

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.consumer import (
    CommitFailedError,
    ConsumerRebalanceListener,
    KafkaConsumer,
    TopicPartition,
)
from kafkapy.clients.consumer.assignors.range_assignor import RangeAssignor
from kafkapy.common.errors import FencedInstanceIdError, KafkaError, RebalanceInProgressError
from tests.clients.helpers import TIMEOUT_S, poll_until, read
from tests.compat.brokers import Broker
from tests.compat.group_members import leave, member_program, wait_for_balance, wait_for_records

Make = Callable[..., KafkaConsumer]
MakeTopic = Callable[..., str]
Produce = Callable[..., None]

ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]


class Recorder(ConsumerRebalanceListener):
    """What happened, as (kind, partition numbers)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, list[int]]] = []

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self.events.append(("revoked", sorted(tp.partition for tp in revoked)))

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self.events.append(("assigned", sorted(tp.partition for tp in assigned)))

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        self.events.append(("lost", sorted(tp.partition for tp in lost)))


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex}"


def shares(*consumers: KafkaConsumer) -> list[int]:
    return [len(consumer.assignment()) for consumer in consumers]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_members_share_partitions_and_take_over_from_one_that_leaves(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce, group: str, assignor: str
) -> None:
    topic = make_topic(partitions=4)
    settings = {"group_id": group, "partition_assignment_strategy": [assignor]}
    first = make_consumer(topic, **settings)
    poll_until(lambda: shares(first) == [4], first)
    for partition in range(4):
        produce(topic, "a", "b", partition=partition)
    seen = read(first, 8)

    second = make_consumer(topic, **settings)
    seen += poll_until(lambda: shares(first, second) == [2, 2], first, second)
    assert not first.assignment() & second.assignment()
    for partition in range(4):
        produce(topic, "c", partition=partition)
    seen += poll_until(lambda: _end_reached(first, second, offset=3), first, second)

    first.close()
    seen += poll_until(lambda: shares(second) == [4], second)
    for partition in range(4):
        produce(topic, "d", partition=partition)
    seen += read(second, 4)

    # Positions were committed with every handover: nothing is read twice or left out.
    assert Counter((r.partition, r.offset) for r in seen) == Counter(
        (partition, offset) for partition in range(4) for offset in range(4)
    )


def _end_reached(*consumers: KafkaConsumer, offset: int) -> bool:
    return all(c.position(tp) == offset for c in consumers for tp in c.assignment())


def test_an_eager_rebalance_revokes_everything_first(
    make_consumer: Make, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(partitions=2)
    listener = Recorder()
    settings = {"group_id": group, "partition_assignment_strategy": ["range"]}
    # Member ids begin with these, and decide who gets which range.
    first = make_consumer(client_id="a", **settings)
    first.subscribe([topic], listener=listener)
    poll_until(lambda: shares(first) == [2], first)

    second = make_consumer(topic, client_id="b", **settings)
    poll_until(lambda: shares(first, second) == [1, 1], first, second)
    first.close()

    assert listener.events == [
        ("assigned", [0, 1]),
        ("revoked", [0, 1]),
        ("assigned", [0]),
        ("revoked", [0]),
    ]


def test_a_cooperative_rebalance_revokes_only_what_goes(
    make_consumer: Make, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(partitions=2)
    listener = Recorder()
    settings = {"group_id": group, "partition_assignment_strategy": ["cooperative-sticky"]}
    first = make_consumer(**settings)
    first.subscribe([topic], listener=listener)
    poll_until(lambda: shares(first) == [2], first)

    second = make_consumer(topic, **settings)
    poll_until(lambda: shares(first, second) == [1, 1], first, second)

    revoked = [partitions for kind, partitions in listener.events if kind == "revoked"]
    (kept,) = (tp.partition for tp in first.assignment())
    assert [partitions for partitions in revoked if partitions] == [[1 - kept]]
    assert ("assigned", [0, 1]) in listener.events
    assert not any(kind == "lost" for kind, _ in listener.events)


def test_a_failing_listener_makes_the_poll_raise_and_the_next_goes_on(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    class Failing(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
            if assigned:
                raise ValueError("not ready")

    topic = make_topic()
    produce(topic, "a")
    consumer = make_consumer()
    consumer.subscribe([topic], listener=Failing())

    with pytest.raises(KafkaError, match="not ready"):
        poll_until(lambda: False, consumer)

    assert len(read(consumer, 1)) == 1


def test_a_failing_strategy_makes_polls_raise_until_it_does_not(
    make_consumer: Make, make_topic: MakeTopic
) -> None:
    class FailsTwice(RangeAssignor):
        calls = 0

        def assign(self, *args, **kwargs):
            self.calls += 1
            if self.calls <= 2:
                raise ValueError("no idea")
            return super().assign(*args, **kwargs)

    consumer = make_consumer(make_topic(), partition_assignment_strategy=[FailsTwice()])

    for _ in range(2):
        with pytest.raises(KafkaError, match="no idea"):
            poll_until(consumer.assignment, consumer)
    poll_until(consumer.assignment, consumer)


def test_topics_may_come_from_an_iterator(make_consumer: Make, make_topic: MakeTopic) -> None:
    topics = {make_topic(), make_topic()}
    consumer = make_consumer()

    consumer.subscribe(topic for topic in topics)  # type: ignore[arg-type]

    assert consumer.subscription() == topics


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_listener_commits_while_the_consumer_is_closed(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce, group: str, assignor: str
) -> None:
    topic = make_topic()
    produce(topic, "a", "b")
    settings = {"group_id": group, "enable_auto_commit": False}
    consumer = make_consumer(**settings, partition_assignment_strategy=[assignor])

    class Commit(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
            consumer.commit_sync()
            consumer.close()  # which it is doing already

    consumer.subscribe([topic], listener=Commit())
    read(consumer, 2)

    consumer.close()

    assert make_consumer(**settings).committed(TopicPartition(topic, 0)) == 2


def test_a_listener_closes_the_consumer_that_is_iterated_over(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce, group: str
) -> None:
    topic = make_topic()
    produce(topic, "a")
    consumer = make_consumer(group_id=group)

    class Close(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
            pass

        def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
            consumer.close()

    consumer.subscribe([topic], listener=Close())

    with pytest.raises(IllegalStateError, match="closed"):
        next(consumer)

    # It has left the group: another gets the partition at once.
    other = make_consumer(topic, group_id=group)
    assert len(read(other, 1, timeout=5)) == 1


def test_new_partitions_are_noticed(
    make_consumer: Make, make_topic: MakeTopic, neutral_admin: object
) -> None:
    from confluent_kafka.admin import NewPartitions

    topic = make_topic()
    consumer = make_consumer(topic, metadata_max_age_ms=200)
    poll_until(lambda: shares(consumer) == [1], consumer)

    changed = neutral_admin.create_partitions([NewPartitions(topic, 3)])  # type: ignore[attr-defined]
    changed[topic].result(10)

    poll_until(lambda: shares(consumer) == [3], consumer)


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    make_consumer: Make, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic(partitions=2)

    def member(name: str) -> KafkaConsumer:
        return make_consumer(topic, group_id=group, group_instance_id=name)

    first, second = member("one"), member("two")
    poll_until(lambda: shares(first, second) == [1, 1], first, second)
    before = second.assignment()
    generation = first.group_metadata().generation_id

    second.close()
    returned = member("two")
    poll_until(lambda: shares(first, returned) == [1, 1], first, returned)

    assert returned.assignment() == before
    assert first.group_metadata().generation_id == generation


def test_of_two_members_with_one_instance_id_the_older_is_fenced(
    make_consumer: Make, make_topic: MakeTopic, group: str
) -> None:
    topic = make_topic()
    older = make_consumer(topic, group_id=group, group_instance_id="one")
    poll_until(lambda: shares(older) == [1], older)

    newer = make_consumer(topic, group_id=group, group_instance_id="one")
    poll_until(lambda: shares(newer) == [1], newer)

    with pytest.raises(FencedInstanceIdError):
        poll_until(lambda: False, older)


def test_a_member_that_polls_too_rarely_loses_its_partitions(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce, group: str
) -> None:
    topic = make_topic()
    produce(topic, "a")
    listener = Recorder()
    consumer = make_consumer(
        group_id=group, max_poll_interval_ms=400, enable_auto_commit=False, session_timeout_ms=6_000
    )
    consumer.subscribe([topic], listener=listener)
    read(consumer, 1)

    deadline = time.monotonic() + TIMEOUT_S
    while consumer.group_metadata().member_id:
        assert time.monotonic() < deadline
        time.sleep(0.02)

    with pytest.raises(CommitFailedError):
        consumer.commit_sync()
    poll_until(lambda: ("lost", [0]) in listener.events, consumer)
    # Nothing was committed, so the record comes again.
    assert len(read(consumer, 1)) == 1


def test_heartbeats_keep_a_member_that_works_for_longer_than_the_session(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce, broker: Broker
) -> None:
    topic = make_topic()
    produce(topic, "a")
    consumer = make_consumer(topic, session_timeout_ms=6_000, enable_auto_commit=False)
    read(consumer, 1)
    generation = consumer.group_metadata()
    before = consumer.metrics()["consumer-coordinator-metrics"]["heartbeat-total"]

    time.sleep(1.0)  # the application is busy

    after = consumer.metrics()["consumer-coordinator-metrics"]["heartbeat-total"]
    assert after - before >= 2
    consumer.commit_sync()
    assert consumer.group_metadata() == generation


def test_a_commit_during_a_rebalance_can_be_repeated_after_a_poll(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce, group: str
) -> None:
    topic = make_topic(partitions=2)
    produce(topic, "a")
    settings = {
        "group_id": group,
        "enable_auto_commit": False,
        "partition_assignment_strategy": ["cooperative-sticky"],
    }
    first = make_consumer(topic, **settings)
    read(first, 1)
    second = make_consumer(topic, **settings)
    refused = 0

    deadline = time.monotonic() + TIMEOUT_S
    while shares(first, second) != [1, 1]:
        assert time.monotonic() < deadline
        second.poll(20)
        first.poll(20)
        try:
            first.commit_sync({TopicPartition(topic, 0): 1})
        except RebalanceInProgressError:
            refused += 1
    first.commit_sync({TopicPartition(topic, 0): 1})

    assert first.committed(TopicPartition(topic, 0)) == 1


def test_enforcing_a_rebalance_starts_a_generation(
    make_consumer: Make, make_topic: MakeTopic
) -> None:
    consumer = make_consumer(make_topic())
    poll_until(consumer.assignment, consumer)
    generation = consumer.group_metadata().generation_id

    consumer.enforce_rebalance("tested")
    poll_until(lambda: consumer.group_metadata().generation_id > generation, consumer)


@pytest.mark.parametrize(
    ("other", "assignor"),
    [
        ("kafka-python", "range"),
        ("kafka-python", "sticky"),
        ("confluent-kafka", "roundrobin"),
        ("confluent-kafka", "cooperative-sticky"),
    ],
)
def test_a_group_of_several_clients_shares_its_partitions(
    make_topic: MakeTopic,
    produce: Produce,
    broker: Broker,
    group: str,
    other: str,
    assignor: str,
) -> None:
    topic = make_topic(partitions=4)
    with (
        member_program("kafkapy", broker.bootstrap) as first,
        member_program(other, broker.bootstrap) as second,
    ):
        members = [program.join(topic, group, assignor) for program in (first, second)]
        wait_for_balance(members, 4)
        for partition in range(4):
            produce(topic, "a", "b", partition=partition)
        wait_for_records(members, 8)
        # Whoever leads: the other goes on alone.
        leave(members[1])
        wait_for_balance(members[:1], 4)
        leave(members[0])

    assert sorted(members[0].records + members[1].records) == [
        (partition, offset) for partition in range(4) for offset in range(2)
    ]
