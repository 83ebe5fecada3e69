"""The source, when brokers and topics do not stay as they were."""

import logging
import pickle
import socket
from dataclasses import replace

import pytest

from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import DataLossError, OptionError, PipelineError
from kafkapy.pipeline.source.offset_range import KafkaInputPartition
from kafkapy.testing import EmbeddedBroker
from tests.integration.pipeline.conftest import MakeTopic
from tests.integration.pipeline.reading import (
    batch_reader,
    make_anew,
    numbers,
    produce,
    read,
    values,
)

SMALL_FETCHES = {"kafka.max.partition.fetch.bytes": "500", "kafka.fetch.max.wait.ms": "50"}


def fill(broker: EmbeddedBroker, topic: str, start: int = 0, end: int = 100) -> None:
    # Many small batches, so that a read takes several fetches.
    produce(broker, topic, numbers(start, end), batch_size=100)


@pytest.mark.parametrize(
    "error",
    [
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "KAFKA_STORAGE_ERROR",
        "OFFSET_NOT_AVAILABLE",
        "UNKNOWN_SERVER_ERROR",
        "OFFSET_OUT_OF_RANGE",
    ],
)
def test_an_error_that_passes_costs_no_row_and_gives_none_twice(
    broker: EmbeddedBroker, topic: str, error: str
) -> None:
    fill(broker, topic)
    broker.faults.on("Fetch", topic=topic).nth(2).times(2).error(error)

    assert values(read(broker, topic, **SMALL_FETCHES)) == numbers(0, 100)
    broker.faults.assert_all_fired()


@pytest.mark.parametrize("number", [1, 3])
def test_a_lost_connection_costs_no_row_and_gives_none_twice(
    broker: EmbeddedBroker, topic: str, number: int
) -> None:
    fill(broker, topic)
    broker.faults.on("Fetch", topic=topic).nth(number).disconnect()
    broker.faults.on("Fetch", topic=topic).nth(number + 2).drop_response()

    assert values(read(broker, topic, **SMALL_FETCHES)) == numbers(0, 100)
    broker.faults.assert_all_fired()


def test_a_planned_batch_is_read_after_the_broker_was_started_again(
    broker: EmbeddedBroker, topic: str
) -> None:
    fill(broker, topic)
    reader = batch_reader(broker, topic, **SMALL_FETCHES)
    (partition,) = pickle.loads(pickle.dumps(reader.partitions()))
    reader = pickle.loads(pickle.dumps(reader))

    found = []
    for count, rows in enumerate(reader.read(partition)):
        found += rows["value"].to_pylist()
        if count == 0:
            broker.restart()

    assert found == numbers(0, 100)


def test_what_fails_for_too_long_is_told_with_its_cause(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, topic)
    broker.faults.on("Fetch", topic=topic).always().error("KAFKA_STORAGE_ERROR")

    with pytest.raises(
        PipelineError, match=rf"{topic}-0: nothing came of offset 0 for 300 ms .*pollTimeoutMs"
    ):
        read(broker, topic, **{"kafkaConsumer.pollTimeoutMs": "300"})


def test_what_may_not_be_read_is_told_at_once(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, topic)
    broker.faults.on("Fetch", topic=topic).error("TOPIC_AUTHORIZATION_FAILED")

    with pytest.raises(PipelineError, match=rf"{topic}-0 \[0, 100\) cannot be read: "):
        read(broker, topic)


def test_records_deleted_after_the_plan_are_data_loss(
    broker: EmbeddedBroker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(broker, topic)
    strict = batch_reader(broker, topic)
    lenient = batch_reader(broker, topic, failOnDataLoss="false", maxRecordsPerPartition="30")
    (whole,) = strict.partitions()
    parts = lenient.partitions()
    with AdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 42})

    with pytest.raises(
        DataLossError, match=rf"{topic}-0: offsets 0 to 100 are wanted, and only 42 to 100"
    ):
        list(strict.read(whole))
    with caplog.at_level(logging.WARNING):
        found = [v for p in parts for rows in lenient.read(p) for v in rows["value"].to_pylist()]

    assert found == numbers(42, 100)
    assert "only 42 to 100 are available" in caplog.text


@pytest.mark.parametrize(("start", "rows"), [(90, 10), (150, 0)])
def test_a_log_that_ends_before_the_plan_is_data_loss(
    broker: EmbeddedBroker, topic: str, start: int, rows: int
) -> None:
    fill(broker, topic)
    soon = {"kafkaConsumer.pollTimeoutMs": "200", **SMALL_FETCHES}
    (planned,) = batch_reader(broker, topic).partitions()
    assert isinstance(planned, KafkaInputPartition)
    longer = KafkaInputPartition(replace(planned.offset_range, from_offset=start, until_offset=200))

    with pytest.raises(DataLossError, match=rf"{topic}-0: offsets .* to 200 .* ends at 100"):
        list(batch_reader(broker, topic, **soon).read(longer))
    lenient = batch_reader(broker, topic, failOnDataLoss="false", **soon)
    assert sum(found.num_rows for found in lenient.read(longer)) == rows


def test_a_topic_made_anew_after_the_plan_is_data_loss(broker: EmbeddedBroker, topic: str) -> None:
    fill(broker, topic)
    strict = batch_reader(broker, topic)
    lenient = batch_reader(broker, topic, failOnDataLoss="false")
    (partition,) = strict.partitions()
    make_anew(broker, topic)
    fill(broker, topic)

    with pytest.raises(DataLossError, match=rf"{topic}-0: .*deleted and created anew"):
        list(strict.read(partition))
    assert list(lenient.read(partition)) == []


def test_what_is_not_there_is_told_with_its_option(
    broker: EmbeddedBroker, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)

    with pytest.raises(OptionError, match=r"^subscribe: does not exist: nowhere"):
        batch_reader(broker, f"{topic},nowhere").partitions()
    with pytest.raises(OptionError, match=rf"^startingOffsets: not among .*: {topic}-5"):
        batch_reader(
            broker, topic, startingOffsets=f'{{"{topic}": {{"0": 0, "1": 0, "5": 0}}}}'
        ).partitions()
    with pytest.raises(OptionError, match=rf"^startingOffsets: {topic}-1: offset 7 is out of"):
        batch_reader(
            broker, topic, startingOffsets=f'{{"{topic}": {{"0": 0, "1": 7}}}}'
        ).partitions()
    with pytest.raises(OptionError, match=rf"^startingTimestamp: {topic}-0 has no record"):
        batch_reader(broker, topic, startingTimestamp="5").partitions()


def test_brokers_that_cannot_be_reached_are_told_with_their_option(
    broker: EmbeddedBroker, topic: str
) -> None:
    fill(broker, topic)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        away = {"kafka.bootstrap.servers": address, "kafka.default.api.timeout.ms": "300"}

        with pytest.raises(PipelineError, match=rf"{address} \(kafka.bootstrap.servers\) did not"):
            batch_reader(broker, topic, **away).partitions()
        (partition,) = batch_reader(broker, topic).partitions()
        reader = batch_reader(broker, topic, **away, **{"kafkaConsumer.pollTimeoutMs": "300"})
        with pytest.raises(PipelineError, match=rf"{topic}-0.* {address} .*can be reached"):
            list(reader.read(partition))


def test_brokers_without_an_address_are_told_with_their_option(
    broker: EmbeddedBroker, topic: str
) -> None:
    with pytest.raises(OptionError, match=r"^kafka.bootstrap.servers: .*'nowhere'"):
        batch_reader(broker, topic, **{"kafka.bootstrap.servers": "nowhere"}).partitions()
