import logging
from uuid import UUID

import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import DataLossError, OptionError
from kafkapy.pipeline.source.kafka_source_offset import KafkaSourceOffset
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.offset_range_planner import OffsetRangePlanner
from tests.unit.pipeline.source.fake_offset_reader import FIRST_ID, FakeOffsetReader

BASE = {"kafka.bootstrap.servers": "x:1", "subscribe": "t"}
LOSS_ALLOWED = {"failOnDataLoss": "false"}


def batch(reader: FakeOffsetReader, **options: str) -> list[str]:
    planner = OffsetRangePlanner(SourceOptions.for_batch(BASE | options), reader)  # type: ignore[arg-type]
    return [str(offset_range) for offset_range in planner.batch_ranges()]


def stream(reader: FakeOffsetReader, **options: str) -> OffsetRangePlanner:
    return OffsetRangePlanner(SourceOptions.for_stream(BASE | options), reader)  # type: ignore[arg-type]


def at(*offsets: int, topic_id: UUID = FIRST_ID) -> KafkaSourceOffset:
    partitions = {TopicPartition("t", index): offset for index, offset in enumerate(offsets)}
    return KafkaSourceOffset(partitions, {"t": topic_id})


def ranges(
    planner: OffsetRangePlanner, start: KafkaSourceOffset, end: KafkaSourceOffset
) -> list[str]:
    return [str(r) for r in planner.stream_ranges(start, end) if r.size > 0]


def test_a_batch_reads_all_there_is() -> None:
    assert batch(FakeOffsetReader((3, 9), (0, 0))) == ["t-0 [3, 9)", "t-1 [0, 0)"]


def test_offsets_are_taken_where_the_log_has_them() -> None:
    reader = FakeOffsetReader((3, 9), (0, 5))

    found = batch(
        reader,
        startingOffsets='{"t": {"0": 4, "1": -2}}',
        endingOffsets='{"t": {"0": 9, "1": -1}}',
    )

    assert found == ["t-0 [4, 9)", "t-1 [0, 5)"]


@pytest.mark.parametrize("option", ["startingOffsets", "endingOffsets"])
@pytest.mark.parametrize(("offset", "nearest"), [(2, 3), (10, 9)])
def test_an_offset_that_the_log_does_not_have_is_told_or_moved(
    option: str, offset: int, nearest: int, caplog: pytest.LogCaptureFixture
) -> None:
    reader = FakeOffsetReader((3, 9))
    given = {option: f'{{"t": {{"0": {offset}}}}}'}

    with pytest.raises(OptionError, match=rf"^{option}: t-0: offset {offset} .* 3 to 9"):
        batch(reader, **given)
    with caplog.at_level(logging.WARNING):
        found = batch(reader, **given, **LOSS_ALLOWED)

    assert found == [f"t-0 [{nearest}, 9)" if option.startswith("s") else f"t-0 [3, {nearest})"]
    assert f"offset {offset} is out of range" in caplog.text


@pytest.mark.parametrize(
    ("named", "complaint"),
    [
        ('{"t": {"0": 3}}', "every partition is to be named, and these are not: t-1"),
        ('{"t": {"0": 3, "1": 3, "2": 3}, "u": {"0": 1}}', "not among .*: t-2, u-0"),
    ],
)
@pytest.mark.parametrize("option", ["startingOffsets", "startingOffsetsByTimestamp"])
def test_all_partitions_are_named_and_no_others(option: str, named: str, complaint: str) -> None:
    reader = FakeOffsetReader((0, 9), (0, 9))

    with pytest.raises(OptionError, match=f"^{option}: {complaint}"):
        batch(reader, **{option: named})


def test_a_time_without_a_record_is_an_error_or_the_end_for_a_start_and_the_end_for_an_end() -> (
    None
):
    reader = FakeOffsetReader((3, 9), (0, 5))
    reader.times = {TopicPartition("t", 0): 1_000, TopicPartition("t", 1): 500}

    with pytest.raises(OptionError, match=r"^startingTimestamp: t-1 has no record at or after 900"):
        batch(reader, startingTimestamp="900")
    found = batch(reader, startingTimestamp="900", startingOffsetsByTimestampStrategy="latest")

    assert found == ["t-0 [3, 9)", "t-1 [5, 5)"]
    assert batch(reader, endingTimestamp="900") == ["t-0 [3, 3)", "t-1 [0, 5)"]


def test_an_end_before_the_start_is_told_where_both_are_offsets() -> None:
    reader = FakeOffsetReader((0, 9))
    reader.times = {TopicPartition("t", 0): 1_000}

    with pytest.raises(OptionError, match=r"^endingOffsets: t-0: it ends at offset 2, before .* 5"):
        batch(reader, startingOffsets='{"t": {"0": 5}}', endingOffsets='{"t": {"0": 2}}')
    found = batch(reader, startingOffsets='{"t": {"0": 5}}', endingTimestamp="900")
    assert found == ["t-0 [5, 0)"], "which is empty, and left out by whoever divides it"


def test_what_does_not_exist_is_told() -> None:
    reader = FakeOffsetReader((0, 9))
    reader.missing = ("t-7",)

    with pytest.raises(OptionError, match=r"^subscribe: does not exist: t-7"):
        batch(reader)
    with pytest.raises(OptionError, match=r"^subscribe: does not exist: t-7"):
        stream(reader).initial_offset()


def test_a_stream_starts_at_the_end_unless_told_otherwise() -> None:
    reader = FakeOffsetReader((3, 9), (0, 5))

    assert stream(reader).initial_offset() == at(9, 5)
    assert stream(reader, startingOffsets="earliest").initial_offset() == at(3, 0)


def test_a_micro_batch_reads_on_where_the_last_one_ended() -> None:
    planner = stream(FakeOffsetReader((0, 9), (0, 5)))

    assert ranges(planner, at(4, 5), at(9, 5)) == ["t-0 [4, 9)"]
    assert ranges(planner, at(9, 5), at(9, 5)) == []


def test_new_partitions_are_read_from_their_first_record() -> None:
    planner = stream(FakeOffsetReader((0, 9), (0, 5)))

    assert planner.starts(at(9), at(9, 5)) == at(9, 0).offsets
    assert ranges(planner, at(9), at(9, 5)) == ["t-1 [0, 5)"]


def test_a_new_partition_that_has_lost_records_already_is_reported() -> None:
    reader = FakeOffsetReader((0, 9), (2, 5))

    with pytest.raises(DataLossError, match="t-1 is new, and its first offset is 2"):
        ranges(stream(reader), at(9), at(9, 5))
    assert ranges(stream(reader, **LOSS_ALLOWED), at(9), at(9, 5)) == ["t-1 [2, 5)"]


def test_a_partition_that_is_gone_is_reported() -> None:
    reader = FakeOffsetReader((0, 9))

    with pytest.raises(DataLossError, match="t-1 cannot be found any more"):
        ranges(stream(reader), at(4, 5), at(9))
    assert ranges(stream(reader, **LOSS_ALLOWED), at(4, 5), at(9)) == ["t-0 [4, 9)"]


def test_a_log_that_has_become_shorter_is_reported() -> None:
    reader = FakeOffsetReader((0, 3))

    with pytest.raises(DataLossError, match="t-0: offset 5 was read, and the log ends at 3 now"):
        ranges(stream(reader), at(5), at(3))
    assert ranges(stream(reader, **LOSS_ALLOWED), at(5), at(3)) == []


def test_a_topic_made_anew_is_reported_and_read_from_its_first_record() -> None:
    reader = FakeOffsetReader((1, 9))
    start, end = at(5, 7), at(9, topic_id=UUID(int=101))

    with pytest.raises(DataLossError, match="topic t has been deleted and created anew"):
        ranges(stream(reader), start, end)
    assert ranges(stream(reader, **LOSS_ALLOWED), start, end) == ["t-0 [1, 9)"]
