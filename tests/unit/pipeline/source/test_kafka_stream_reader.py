import pickle
from functools import partial

import pytest

from kafkapy.common.errors import CoordinatorNotAvailableError
from kafkapy.common.types import TopicPartition
from tests.helpers.spark import NO_LIMITS
from tests.unit.pipeline.source.fake_stream import FakeStream, at

datasource = pytest.importorskip("pyspark.sql.streaming.datasource", reason=NO_LIMITS)

from kafkapy.pipeline.source.kafka_stream_reader import KafkaStreamReader  # noqa: E402

ALL = datasource.ReadAllAvailable()
Stream = partial(FakeStream, KafkaStreamReader)


def test_a_stream_goes_from_its_start_to_what_there_is() -> None:
    stream = Stream((0, 5))

    start = stream.reader.initialOffset()
    stream.grow(8, 2)

    assert start == at(5)
    assert stream.reader.latestOffset(start, ALL) == at(8, 2)
    assert stream.ranges(start, at(8, 2)) == ["t-0 [5, 8)", "t-1 [0, 2)"]
    assert stream.reader.partitions(start, start) == []


def test_the_most_of_a_batch_is_shared_out_and_the_whole_is_reported() -> None:
    stream = Stream((0, 90), (0, 10), maxOffsetsPerTrigger="10")
    limit = stream.reader.getDefaultReadLimit()

    assert limit == datasource.ReadMaxRows(10)
    assert stream.reader.latestOffset(at(0, 0), limit) == at(9, 1)
    assert stream.reader.reportLatestOffset() == at(90, 10)
    assert stream.reader.latestOffset(at(0, 0), ALL) == at(90, 10), "Trigger.Once knows no limit"


def test_a_batch_waits_for_its_least_and_leaves_the_offsets_alone_meanwhile() -> None:
    stream = Stream((0, 10), minOffsetsPerTrigger="10", maxTriggerDelay="1m")
    limit = stream.reader.getDefaultReadLimit()

    assert limit == datasource.ReadMinRows(10)
    assert stream.reader.latestOffset(at(0), limit) == at(10)
    stream.grow(15, 3)
    assert stream.reader.latestOffset(at(10), limit) == at(10), "also without the new partition"
    stream.time.sleep(60_000)
    assert stream.reader.latestOffset(at(10), limit) == at(15, 3)


def test_a_least_and_a_most_go_together() -> None:
    stream = Stream((0, 100), minOffsetsPerTrigger="5", maxOffsetsPerTrigger="20")
    limit = stream.reader.getDefaultReadLimit()

    assert stream.reader.latestOffset(at(0), limit) == at(20)
    assert stream.reader.latestOffset(at(98), limit) == at(98)
    assert stream.reader.latestOffset(at(50), limit) == at(70)


def test_brokers_are_asked_at_most_every_hundred_milliseconds_while_nothing_is_new() -> None:
    stream = Stream((0, 5))
    start_ms = stream.time.hi_res_clock_ms()

    for _ in range(5):
        assert stream.reader.latestOffset(at(5), ALL) == at(5)
    assert stream.time.hi_res_clock_ms() - start_ms == 400

    stream.time.sleep(100)
    stream.grow(6)
    assert stream.reader.latestOffset(at(5), ALL) == at(6)
    stream.grow(7)
    assert stream.reader.latestOffset(at(6), ALL) == at(7)
    assert stream.time.hi_res_clock_ms() - start_ms == 500, "what is new is not waited for"


def test_available_now_ends_where_the_logs_ended_when_it_began() -> None:
    stream = Stream((0, 25), maxOffsetsPerTrigger="10", minOffsetsPerTrigger="8")
    limit = stream.reader.getDefaultReadLimit()

    stream.reader.prepareForTriggerAvailableNow()
    stream.grow(40, 7)

    assert stream.reader.latestOffset(at(0), limit) == at(10)
    assert stream.reader.latestOffset(at(20), limit) == at(25), "the last may have less"
    assert stream.reader.latestOffset(at(25), limit) == at(25)


def test_available_now_from_the_latest_offset_starts_no_later_than_it_ends() -> None:
    stream = Stream((0, 25))

    stream.reader.prepareForTriggerAvailableNow()
    stream.grow(40, 7)
    start = stream.reader.initialOffset()

    assert start == at(25)
    assert stream.reader.latestOffset(start, ALL) == at(25)


def test_offsets_are_committed_to_the_group_when_they_have_been_processed() -> None:
    stream = Stream((0, 25), commitOffsetsToGroup="lag", maxOffsetsPerTrigger="10")
    partition = TopicPartition("t", 0)
    limit = stream.reader.getDefaultReadLimit()

    stream.reader.latestOffset(at(0), limit)
    stream.reader.latestOffset(at(10), limit)
    stream.reader.commit(at(10))
    # After the last batch of Trigger.AvailableNow nothing but this is called.
    stream.reader.latestOffset(at(20), limit)

    assert [offsets[partition] for _, offsets in stream.brokers.committed] == [0, 10, 20]
    assert {group for group, _ in stream.brokers.committed} == {"lag"}


def test_a_commit_that_fails_is_logged_and_tried_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream = Stream((0, 25), commitOffsetsToGroup="lag")

    stream.brokers.commit_error = CoordinatorNotAvailableError("not yet")
    stream.reader.commit(at(5))
    stream.brokers.commit_error = None
    stream.reader.commit(at(8))
    assert stream.brokers.committed == [], "too early"
    stream.time.sleep(1_000)
    stream.reader.latestOffset(at(8), ALL)

    assert stream.brokers.committed == [("lag", {TopicPartition("t", 0): 8})]
    assert "not committed to group lag: not yet" in caplog.text


def test_without_a_group_nothing_is_committed() -> None:
    stream = Stream((0, 25))

    stream.reader.commit(at(5))

    assert stream.brokers.committed == []


def test_a_reader_is_pickled_without_its_connections() -> None:
    stream = Stream((0, 25), maxOffsetsPerTrigger="3")

    stream.reader.latestOffset(at(0), ALL)
    copy = pickle.loads(pickle.dumps(stream.reader))

    assert copy.getDefaultReadLimit() == datasource.ReadMaxRows(3)
    assert copy.reportLatestOffset() is None
    stream.reader.stop()
    assert stream.brokers.is_closed
