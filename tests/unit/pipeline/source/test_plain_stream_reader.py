import pickle
from functools import partial
from uuid import UUID

import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import DataLossError
from kafkapy.pipeline.source.plain_stream_reader import PlainStreamReader
from tests.unit.pipeline.source.fake_stream import FakeStream, at

Stream = partial(FakeStream, PlainStreamReader)


def test_a_batch_takes_all_there_is() -> None:
    stream = Stream((0, 5), startingOffsets="earliest")

    first = stream.reader.latestOffset()
    start = stream.reader.initialOffset()
    stream.grow(8, 2)
    second = stream.reader.latestOffset()

    assert (start, first, second) == (at(0), at(5), at(8, 2))
    assert stream.ranges(start, first) == ["t-0 [0, 5)"]
    assert stream.ranges(first, second) == ["t-0 [5, 8)", "t-1 [0, 2)"]
    assert stream.reader.partitions(second, second) == []


def test_a_query_from_the_latest_offset_starts_where_its_first_batch_ends() -> None:
    stream = Stream((0, 5))

    end = stream.reader.latestOffset()
    stream.grow(8, 2)

    assert stream.reader.initialOffset() == end == at(5), "Spark asks for the start after the end"
    assert stream.ranges(at(5), stream.reader.latestOffset()) == ["t-0 [5, 8)", "t-1 [0, 2)"]


def test_brokers_are_asked_at_most_every_hundred_milliseconds_while_nothing_is_new() -> None:
    stream = Stream((0, 5))
    stream.reader.partitions(at(5), at(5))
    start_ms = stream.time.hi_res_clock_ms()

    for _ in range(5):
        assert stream.reader.latestOffset() == at(5)
    assert stream.time.hi_res_clock_ms() - start_ms == 400

    stream.time.sleep(100)
    stream.grow(6)
    assert stream.reader.latestOffset() == at(6)
    stream.grow(7)
    assert stream.reader.latestOffset() == at(7)
    assert stream.time.hi_res_clock_ms() - start_ms == 500, "what is new is not waited for"


def test_offsets_are_committed_to_the_group_when_the_next_batch_is_looked_for() -> None:
    stream = Stream((0, 5), commitOffsetsToGroup="lag")
    partition = TopicPartition("t", 0)

    stream.reader.latestOffset()
    assert stream.brokers.committed == [], "nothing has been processed"
    stream.reader.partitions(at(0), at(5))
    stream.grow(9)
    stream.reader.latestOffset()
    stream.reader.commit(at(5))
    stream.reader.partitions(at(5), at(9))
    stream.reader.latestOffset()

    assert [offsets[partition] for _, offsets in stream.brokers.committed] == [5, 9]


def test_what_is_lost_is_told_before_the_batch_is_in_the_checkpoint() -> None:
    stream = Stream((0, 5), (0, 5))

    stream.reader.partitions(at(5, 5), at(5, 5))  # as Spark does when it goes on
    del stream.brokers.logs[TopicPartition("t", 1)]
    with pytest.raises(DataLossError, match="t-1 cannot be found any more"):
        stream.reader.latestOffset()

    stream.brokers.topic_id = UUID(int=7)
    with pytest.raises(DataLossError, match="topic t has been deleted and created anew"):
        stream.reader.latestOffset()


def test_what_is_lost_between_runs_that_end_by_themselves_is_told_by_the_batch() -> None:
    stream = Stream((0, 5), (0, 5))

    stream.brokers.topic_id = UUID(int=7)
    end = stream.reader.latestOffset()  # Trigger.AvailableNow, before anything is known

    with pytest.raises(DataLossError, match="topic t has been deleted and created anew"):
        stream.reader.partitions(at(3, 3), end)


def test_a_log_that_ends_before_what_was_read_is_told() -> None:
    stream = Stream((0, 5))

    stream.reader.partitions(at(5), at(5))
    stream.grow(3)

    with pytest.raises(DataLossError, match="offset 5 was read, and the log ends at 3"):
        stream.reader.partitions(at(5), stream.reader.latestOffset())


def test_with_loss_allowed_a_topic_that_was_made_anew_is_read_from_its_start() -> None:
    stream = Stream((0, 5), failOnDataLoss="false")

    stream.reader.partitions(at(5), at(5))
    stream.brokers.topic_id = UUID(int=7)
    end = stream.reader.latestOffset()

    assert stream.ranges(at(5), end) == ["t-0 [0, 5)"]


def test_a_reader_is_pickled_without_what_it_has_seen() -> None:
    stream = Stream((0, 25))

    stream.reader.latestOffset()
    copy = pickle.loads(pickle.dumps(stream.reader))

    assert type(copy) is PlainStreamReader
    stream.reader.stop()
    assert stream.brokers.is_closed
