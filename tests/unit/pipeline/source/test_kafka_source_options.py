import pickle

import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.pipeline.source.consumer_strategy import (
    AssignStrategy,
    SubscribePatternStrategy,
    SubscribeStrategy,
)
from kafkapy.pipeline.source.kafka_source_options import SourceOptions, TimestampStrategy
from kafkapy.pipeline.source.offset_range_limit import (
    GlobalTimestamp,
    LogEnd,
    SpecificOffsets,
    SpecificTimestamps,
)

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def batch(**options: str) -> SourceOptions:
    return SourceOptions.for_batch(BASE | options)


def stream(**options: str) -> SourceOptions:
    return SourceOptions.for_stream(BASE | options)


def test_defaults_are_the_official_connectors() -> None:
    found = batch()

    assert found.strategy == SubscribeStrategy(frozenset({"orders"}))
    assert (found.starting, found.ending) == (LogEnd.EARLIEST, LogEnd.LATEST)
    assert stream().starting is LogEnd.LATEST
    assert found.fail_on_data_loss
    assert not found.include_headers
    assert found.timestamp_strategy is TimestampStrategy.ERROR
    assert (found.max_offsets_per_trigger, found.min_offsets_per_trigger) == (None, None)
    assert (found.min_partitions, found.max_records_per_partition) == (None, None)
    assert found.max_trigger_delay_ms == 15 * 60_000
    assert (found.fetch_offset_num_retries, found.fetch_offset_retry_interval_ms) == (3, 10)
    assert found.poll_timeout_ms == 120_000
    assert found.group_id_prefix == "spark-kafka-source"
    assert found.commit_offsets_to_group is None
    assert not found.consumer_config().is_read_committed


def test_names_of_options_are_read_in_any_case_and_values_without_blanks() -> None:
    options = {name.upper(): f" {value} " for name, value in BASE.items()}

    found = SourceOptions.for_batch(options | {"FAILONDATALOSS": " False ", "minpartitions": "7"})

    assert found.strategy == SubscribeStrategy(frozenset({"orders"}))
    assert not found.fail_on_data_loss
    assert found.min_partitions == 7
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("option", "value", "strategy"),
    [
        ("subscribe", "a, b,,a", SubscribeStrategy(frozenset({"a", "b"}))),
        ("subscribePattern", "ord.*", SubscribePatternStrategy("ord.*")),
        (
            "assign",
            '{"a": [0, 2]}',
            AssignStrategy(frozenset({TopicPartition("a", 0), TopicPartition("a", 2)})),
        ),
    ],
)
def test_each_way_to_name_what_is_read(option: str, value: str, strategy: object) -> None:
    servers = {"kafka.bootstrap.servers": "localhost:9092"}

    assert SourceOptions.for_batch(servers | {option: value}).strategy == strategy


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"subscribe": "a", "assign": '{"a": [0]}'},
        {"subscribe": "a", "subscribePattern": "a", "assign": '{"a": [0]}'},
    ],
)
def test_exactly_one_way_is_to_be_given(options: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"^subscribe/subscribePattern/assign: exactly one"):
        SourceOptions.for_stream({"kafka.bootstrap.servers": "localhost:9092"} | options)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"startingOffsets": "EARLIEST"}, LogEnd.EARLIEST),
        ({"startingOffsets": "latest"}, LogEnd.LATEST),
        (
            {"startingOffsets": '{"orders": {"0": 23, "1": -1, "2": -2}}'},
            SpecificOffsets(
                "startingOffsets",
                {
                    TopicPartition("orders", 0): 23,
                    TopicPartition("orders", 1): -1,
                    TopicPartition("orders", 2): -2,
                },
            ),
        ),
        (
            {"startingOffsetsByTimestamp": '{"orders": {"0": 1000}}', "startingOffsets": "latest"},
            SpecificTimestamps("startingOffsetsByTimestamp", {TopicPartition("orders", 0): 1000}),
        ),
        (
            {"startingTimestamp": "5", "startingOffsetsByTimestamp": "{}"},
            GlobalTimestamp("startingTimestamp", 5),
        ),
    ],
)
def test_a_time_for_all_wins_over_times_and_those_over_offsets(
    options: dict[str, str], limit: object
) -> None:
    assert stream(**options).starting == limit


def test_ends_are_given_in_the_same_forms() -> None:
    assert batch(endingOffsets='{"orders": {"0": -1}}').ending == SpecificOffsets(
        "endingOffsets", {TopicPartition("orders", 0): -1}
    )
    assert batch(endingTimestamp="7").ending == GlobalTimestamp("endingTimestamp", 7)


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("subscribe", " , ", "separated by commas"),
        ("startingOffsets", "latest", "cannot start at the latest"),
        ("startingOffsets", '{"orders": {"0": -1}}', "orders-0: a batch cannot start"),
        ("endingOffsets", "earliest", "cannot end at the earliest"),
        ("endingOffsets", '{"orders": {"3": -2}}', "orders-3: a batch cannot end"),
        ("startingOffsets", "soon", "expected JSON"),
        ("startingOffsets", "[1]", "expected JSON"),
        ("startingOffsets", '{"orders": 5}', "orders: expected a number for each partition"),
        ("startingOffsets", '{"orders": {"x": 5}}', "orders: 'x' is no partition"),
        ("startingOffsets", '{"orders": {"0": -3}}', "orders-0: .* not -3"),
        ("startingOffsets", '{"orders": {"0": "5"}}', "orders-0: .* not '5'"),
        ("endingOffsetsByTimestamp", '{"orders": {"0": -1}}', "orders-0: .* not -1"),
        ("startingTimestamp", "noon", "from 0 on, not 'noon'"),
        ("endingTimestamp", "-1", "from 0 on, not '-1'"),
        ("startingOffsetsByTimestampStrategy", "guess", "error or latest, not 'guess'"),
        ("failOnDataLoss", "maybe", "true or false, not 'maybe'"),
        ("includeHeaders", "", "true or false, not ''"),
        ("maxOffsetsPerTrigger", "0", "from 1 on, not '0'"),
        ("startingTimestamp", f"{2**63}", "9223372036854775808 takes more than 64 bits"),
        ("startingOffsetsByTimestamp", f'{{"a": {{"0": {2**63}}}}}', "a-0: .* more than 64 bits"),
        ("minOffsetsPerTrigger", "x", "from 1 on, not 'x'"),
        ("maxTriggerDelay", "15 fortnights", "a time like 30s, 15m or 1h"),
        ("minPartitions", "0", "from 1 on"),
        ("maxRecordsPerPartition", "-5", "from 1 on"),
        ("fetchOffset.numRetries", "-1", "from 0 on"),
        ("fetchOffset.retryIntervalMs", "1.5", "from 0 on"),
        ("kafkaConsumer.pollTimeoutMs", "long", "from 0 on"),
        ("commitOffsetsToGroup", " ", "name of a consumer group"),
        ("kafka.auto.offset.reset", "latest", "startingOffsets instead"),
        ("kafka.session.timeout.ms", "5", "heartbeat.interval.ms"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_option(
    option: str, value: str, complaint: str
) -> None:
    with pytest.raises(OptionError, match=complaint) as caught:
        SourceOptions.for_batch(BASE | {option: value})
    assert caught.value.option in (option, "kafka.*")


@pytest.mark.parametrize(
    ("option", "value"),
    [("assign", "{}"), ("assign", '{"a": 0}'), ("assign", '{"a": [-1]}'), ("assign", '{"a"'),
     ("subscribePattern", ""), ("subscribePattern", "(")],
)  # fmt: skip
def test_a_bad_strategy_is_told_with_its_option(option: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"^{option}: "):
        SourceOptions.for_batch({"kafka.bootstrap.servers": "localhost:9092", option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("endingOffsets", "latest"),
        ("endingTimestamp", "5"),
        ("endingOffsetsByTimestamp", '{"orders": {"0": 5}}'),
    ],
)
def test_a_stream_has_no_end(option: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"^{option}: a stream has no end"):
        stream(**{option: value})


@pytest.mark.parametrize(
    ("option", "value"),
    [("maxOffsetsPerTrigger", "5"), ("MINOFFSETSPERTRIGGER", "5"), ("maxTriggerDelay", "1m")],
)
def test_limits_are_refused_where_spark_takes_none(option: str, value: str) -> None:
    with pytest.raises(OptionError, match=f"(?i)^{option}: Spark 4.2 or newer is needed"):
        SourceOptions.for_stream(BASE | {option: value}, has_limits=False)

    assert SourceOptions.for_stream(BASE, has_limits=False) == stream()


def test_the_least_of_a_batch_is_at_most_its_most() -> None:
    assert stream(minOffsetsPerTrigger="5", maxOffsetsPerTrigger="5").min_offsets_per_trigger == 5
    with pytest.raises(OptionError, match=r"^minOffsetsPerTrigger: 6 is more than .*5"):
        stream(minOffsetsPerTrigger="6", maxOffsetsPerTrigger="5")


@pytest.mark.parametrize(
    ("text", "ms"),
    [("20", 20), ("20ms", 20), ("30s", 30_000), ("2min", 120_000), ("1 h", 3_600_000),
     ("1d", 86_400_000), ("5000us", 5)],
)  # fmt: skip
def test_a_delay_has_sparks_units(text: str, ms: int) -> None:
    assert stream(maxTriggerDelay=text).max_trigger_delay_ms == ms


def test_unknown_options_are_left_alone_unless_they_must_be_meant_for_us() -> None:
    assert batch(path="x", subscribed="y") == batch()
    with pytest.raises(OptionError, match=r"^commitoffsettogroup: .*commitOffsetsToGroup meant"):
        stream(commitOffsetToGroup="g")


def test_fetches_are_larger_than_kafkas_default_unless_the_user_says_otherwise() -> None:
    assert batch().consumer_config().max_partition_fetch_bytes == 4 * 1024 * 1024
    small = SourceOptions.for_batch(BASE | {"kafka.max.partition.fetch.bytes": "1000"})
    assert small.consumer_config().max_partition_fetch_bytes == 1000


def test_a_group_that_is_not_joined_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    SourceOptions.for_stream(BASE | {"kafka.group.id": "mine"})

    assert "kafka.group.id has no effect" in caplog.text
