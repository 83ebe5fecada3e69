"""Positions: where they start, how they move, and how they are committed."""

import time
from collections.abc import Callable, Mapping

import pytest

from kafkapy.clients.consumer import (
    FetchOffsetOutOfRangeError,
    KafkaConsumer,
    NoOffsetForPartitionError,
    OffsetAndMetadata,
    TopicPartition,
)
from tests.clients.helpers import poll_until, read, values

Make = Callable[..., KafkaConsumer]
MakeTopic = Callable[..., str]
Produce = Callable[..., None]


@pytest.fixture
def partition(make_topic: MakeTopic, produce: Produce) -> TopicPartition:
    """With the values 0 to 9 at the offsets 0 to 9."""
    topic = make_topic()
    produce(topic, *(str(n) for n in range(10)))
    return TopicPartition(topic, 0)


def assigned(make_consumer: Make, partition: TopicPartition, **settings: object) -> KafkaConsumer:
    consumer = make_consumer(**settings)
    consumer.assign([partition])
    return consumer


# Where a position starts


def test_earliest_starts_at_the_first_record(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition, auto_offset_reset="earliest")

    assert consumer.position(partition) == 0
    assert len(read(consumer, 10)) == 10


def test_latest_starts_after_the_last_record(
    make_consumer: Make, partition: TopicPartition, produce: Produce
) -> None:
    consumer = assigned(make_consumer, partition, auto_offset_reset="latest")

    assert consumer.position(partition) == 10
    produce(partition.topic, "new")
    assert values(read(consumer, 1)) == [b"new"]


def test_none_raises_without_a_committed_offset(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition, auto_offset_reset="none")

    with pytest.raises(NoOffsetForPartitionError, match=str(partition)) as raised:
        poll_until(lambda: False, consumer)
    assert raised.value.partitions == {partition}
    consumer.seek(partition, 8)
    assert values(read(consumer, 2)) == [b"8", b"9"]


@pytest.mark.parametrize(
    ("policy", "expected"), [("earliest", 0), ("latest", 10)], ids=["earliest", "latest"]
)
def test_a_position_outside_the_log_is_reset(
    make_consumer: Make, partition: TopicPartition, policy: str, expected: int
) -> None:
    consumer = assigned(make_consumer, partition, auto_offset_reset=policy, group_id=None)
    consumer.seek(partition, 1_000)

    poll_until(lambda: consumer.position(partition) <= 10, consumer)

    assert consumer.position(partition) in (expected, 10)


def test_a_position_outside_the_log_raises_without_a_policy(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition, auto_offset_reset="none", group_id=None)
    consumer.seek(partition, 1_000)

    with pytest.raises(FetchOffsetOutOfRangeError, match="1000") as raised:
        poll_until(lambda: False, consumer)

    assert raised.value.positions == {partition: 1_000}


def test_a_committed_offset_goes_before_the_policy(
    make_consumer: Make, partition: TopicPartition
) -> None:
    first = assigned(make_consumer, partition, group_id="resume" + partition.topic)
    first.commit_sync({partition: OffsetAndMetadata(7, "noted")})

    second = assigned(make_consumer, partition, group_id="resume" + partition.topic)

    assert values(read(second, 3)) == [b"7", b"8", b"9"]
    assert second.committed(partition, metadata=True).metadata == "noted"


# Commits


def test_commit_sync_commits_what_was_returned(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition, enable_auto_commit=False)
    assert consumer.committed(partition) is None
    consumer.poll(5_000, max_records=4)

    consumer.commit_sync()

    assert consumer.committed(partition) == 4
    assert consumer.committed({partition}) == {partition: OffsetAndMetadata(4, "", 0)}


def test_commit_sync_takes_offsets_as_numbers_too(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition)

    consumer.commit_sync({partition: 3})

    assert consumer.committed(partition) == 3


def test_commit_async_calls_back_in_order(make_consumer: Make, partition: TopicPartition) -> None:
    consumer = assigned(make_consumer, partition, enable_auto_commit=False)
    done: list[tuple[int, Exception | None]] = []

    def callback(
        offsets: Mapping[TopicPartition, OffsetAndMetadata], error: Exception | None
    ) -> None:
        done.append((offsets[partition].offset, error))

    for offset in (2, 5, 6):
        consumer.commit_async({partition: OffsetAndMetadata(offset)}, callback)
    consumer.commit_sync({})

    assert done == [(2, None), (5, None), (6, None)]
    assert consumer.committed(partition) == 6


def test_auto_commit_commits_at_its_interval(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition, auto_commit_interval_ms=50)
    read(consumer, 10)

    poll_until(lambda: consumer.committed(partition) == 10, consumer)


def test_closing_commits_when_that_is_automatic(
    make_consumer: Make, partition: TopicPartition
) -> None:
    group = "close" + partition.topic
    first = make_consumer(partition.topic, group_id=group)
    read(first, 10)
    first.close()

    second = make_consumer(group_id=group)

    assert second.committed(partition) == 10


def test_closing_without_automatic_commits_commits_nothing(
    make_consumer: Make, partition: TopicPartition
) -> None:
    group = "manual" + partition.topic
    first = make_consumer(partition.topic, group_id=group, enable_auto_commit=False)
    read(first, 10)
    first.close()

    assert make_consumer(group_id=group).committed(partition) is None


def test_iterating_commits_only_what_was_handed_out(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = make_consumer(partition.topic, enable_auto_commit=False)
    seen = []

    for record in consumer:
        seen.append(record.value)
        if len(seen) == 3:
            consumer.commit_sync()
            break

    assert seen == [b"0", b"1", b"2"]
    assert consumer.committed(partition) == 3
    assert next(consumer).value == b"3"


def test_iterating_follows_a_seek(make_consumer: Make, partition: TopicPartition) -> None:
    consumer = assigned(make_consumer, partition, consumer_timeout_ms=1_000)
    seen = []

    for record in consumer:
        seen.append(record.value)
        if record.value == b"1":
            consumer.seek(partition, 8)

    assert seen == [b"0", b"1", b"8", b"9"]


# Moving


def test_seeking_to_the_ends(make_consumer: Make, partition: TopicPartition) -> None:
    consumer = assigned(make_consumer, partition, group_id=None)

    consumer.seek_to_end()
    assert consumer.position(partition) == 10
    consumer.seek_to_beginning(partition)
    assert consumer.position(partition) == 0
    consumer.seek(partition, OffsetAndMetadata(9, "", 0))
    assert values(read(consumer, 1)) == [b"9"]


def test_a_position_inside_a_batch_starts_there(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition, group_id=None)
    consumer.seek(partition, 5)

    assert values(read(consumer, 5)) == [b"5", b"6", b"7", b"8", b"9"]


def test_max_records_bounds_a_poll(make_consumer: Make, partition: TopicPartition) -> None:
    consumer = assigned(make_consumer, partition, group_id=None, max_poll_records=4)

    assert len(consumer.poll(5_000, max_records=3)[partition]) == 3
    assert len(consumer.poll(5_000)[partition]) == 4
    assert consumer.position(partition) == 7


def test_a_poll_that_leaves_offsets_alone_returns_the_same_again(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition, group_id=None)

    first = consumer.poll(5_000, max_records=2, update_offsets=False)
    assert consumer.position(partition) == 0
    again = consumer.poll(5_000, max_records=2)

    assert values(first[partition]) == values(again[partition]) == [b"0", b"1"]


def test_a_paused_partition_keeps_what_was_fetched(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition, group_id=None)
    consumer.poll(5_000, max_records=2)

    consumer.pause(partition)
    assert consumer.poll(300) == {}
    assert consumer.paused() == {partition}
    consumer.resume(partition)

    assert values(read(consumer, 8))[0] == b"2"


def test_lag_and_high_watermark_come_with_fetches(
    make_consumer: Make, partition: TopicPartition
) -> None:
    consumer = assigned(make_consumer, partition, group_id=None)
    assert consumer.highwater(partition) is None

    consumer.poll(5_000, max_records=4)

    assert consumer.highwater(partition) == 10
    assert consumer.current_lag(partition) == 6


def test_offsets_by_time_and_at_the_ends(
    make_consumer: Make, make_topic: MakeTopic, produce: Produce
) -> None:
    topic = make_topic(partitions=2)
    filled, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    now_ms = int(time.time() * 1000)
    for index in range(3):
        produce(topic, str(index), timestamp=now_ms + 1_000 * index)
    consumer = make_consumer(group_id=None)

    found = consumer.offsets_for_times({filled: now_ms + 500, empty: now_ms})
    later = consumer.offsets_for_times({filled: now_ms + 60_000})

    assert found[filled] is not None and found[filled].offset == 1
    assert found[filled].timestamp == now_ms + 1_000
    assert found[empty] is None
    assert later == {filled: None}
    assert consumer.beginning_offsets([filled, empty]) == {filled: 0, empty: 0}
    assert consumer.end_offsets([filled, empty]) == {filled: 3, empty: 0}
