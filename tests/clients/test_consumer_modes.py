"""Topics, a pattern, or partitions: what is read, and that it is one of the three."""

import re
from collections.abc import Callable

import pytest

from kafkapy.clients.consumer import IllegalStateError, KafkaConsumer, TopicPartition
from tests.clients.helpers import poll_until, read, values

Make = Callable[..., KafkaConsumer]
MakeTopic = Callable[..., str]
Produce = Callable[..., None]


def test_assigned_partitions_are_read_and_no_others(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic(partitions=3)
    for partition in range(3):
        produce(topic, f"in {partition}", partition=partition)
    consumer = make_consumer(group_id=None)

    consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 2)])
    records = read(consumer, 2)

    assert sorted(values(records)) == [b"in 0", b"in 2"]
    assert {record.partition for record in records} == {0, 2}
    assert consumer.assignment() == {TopicPartition(topic, 0), TopicPartition(topic, 2)}
    assert consumer.subscription() == set()


def test_an_assignment_that_changes_keeps_the_positions_of_what_stays(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic(partitions=2)
    stays, comes = TopicPartition(topic, 0), TopicPartition(topic, 1)
    produce(topic, "a", "b")
    produce(topic, "c", partition=1)
    consumer = make_consumer(group_id=None)
    consumer.assign([stays])
    read(consumer, 2)

    consumer.assign([stays, comes])

    assert values(read(consumer, 1)) == [b"c"]
    assert consumer.position(stays) == 2


def test_subscribed_topics_are_read(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    first, second = make_topic(partitions=2), make_topic()
    produce(first, "a")
    produce(first, "b", partition=1)
    produce(second, "c")

    consumer = make_consumer(first, second)

    assert sorted(values(read(consumer, 3))) == [b"a", b"b", b"c"]
    assert consumer.subscription() == {first, second}
    assert len(consumer.assignment()) == 3


def test_a_changed_subscription_replaces_the_old_one(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    first, second = make_topic(), make_topic()
    produce(first, "a")
    produce(second, "b")
    consumer = make_consumer(first)
    read(consumer, 1)

    consumer.subscribe([second])

    assert values(read(consumer, 1)) == [b"b"]
    assert consumer.assignment() == {TopicPartition(second, 0)}


def test_a_pattern_takes_whole_names_and_topics_that_come_later(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic()
    produce(topic, "a")
    consumer = make_consumer(metadata_max_age_ms=300)

    consumer.subscribe(pattern=re.escape(topic) + "|.*-later")
    assert values(read(consumer, 1)) == [b"a"]
    # Made by the consumer of another group, as brokers create topics by themselves.
    later = f"{topic}-later"
    other = make_consumer(group_id=None)
    other.partitions_for(later)
    produce(later, "b")
    records = poll_until(lambda: TopicPartition(later, 0) in consumer.assignment(), consumer)

    assert b"b" in values(records) or values(read(consumer, 1)) == [b"b"]
    assert consumer.subscription() == {topic, later}


def test_a_pattern_leaves_internal_topics_out(make_consumer: Make, make_topic: MakeTopic) -> None:
    topic = make_topic()
    consumer = make_consumer()

    consumer.subscribe(re.compile(f"__consumer_offsets|{topic}"))
    poll_until(consumer.assignment, consumer)

    assert consumer.subscription() == {topic}


@pytest.mark.parametrize("first", ["topics", "pattern", "partitions"])
@pytest.mark.parametrize("second", ["topics", "pattern", "partitions"])
def test_the_three_modes_exclude_each_other(
    make_consumer: Make, make_topic: MakeTopic, first: str, second: str
) -> None:
    consumer = make_consumer()
    choose: dict[str, Callable[[], None]] = {
        "topics": lambda: consumer.subscribe(["some-topic"]),
        "pattern": lambda: consumer.subscribe(pattern="some-.*"),
        "partitions": lambda: consumer.assign([TopicPartition("some-topic", 0)]),
    }
    choose[first]()

    if first != second:
        with pytest.raises(IllegalStateError, match="mutually exclusive"):
            choose[second]()
    else:
        choose[second]()
    consumer.unsubscribe()
    choose[second]()


def test_nothing_is_read_after_unsubscribing(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic()
    produce(topic, "a")
    consumer = make_consumer(topic)
    read(consumer, 1)

    consumer.unsubscribe()

    assert consumer.assignment() == set()
    with pytest.raises(IllegalStateError, match="not subscribed"):
        consumer.poll(0)


def test_topics_and_partitions_can_be_asked_for(make_consumer: Make, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    consumer = make_consumer(group_id=None, allow_auto_create_topics=False)

    assert topic in consumer.topics()
    assert consumer.partitions_for_topic(topic) == {0, 1}
    assert [info.partition for info in consumer.partitions_for(topic)] == [0, 1]
    assert consumer.partitions_for_topic("no-such-topic") is None
