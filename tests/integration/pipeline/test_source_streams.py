"""Streams of the source, driven as Spark drives them."""

import logging

import pytest

from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.clients.producer import KafkaProducer
from kafkapy.pipeline.pipeline_errors import DataLossError, PipelineError
from kafkapy.testing import EmbeddedBroker
from tests.helpers.spark import NO_LIMITS
from tests.helpers.waiting import wait_until
from tests.integration.pipeline.conftest import MakeTopic
from tests.integration.pipeline.reading import (
    make_anew,
    numbers,
    produce,
    read_between,
    stream_reader,
)

datasource = pytest.importorskip("pyspark.sql.streaming.datasource", reason=NO_LIMITS)
ALL = datasource.ReadAllAvailable()


def test_a_stream_reads_each_record_once_also_of_partitions_that_come_later(
    broker: EmbeddedBroker, topic: str
) -> None:
    produce(broker, topic, [b"before"])
    reader = stream_reader(broker, topic)

    start = reader.initialOffset()
    produce(broker, topic, numbers(0, 5))
    first = reader.latestOffset(start, ALL)
    with AdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_partitions({topic: 2})
    produce(broker, topic, numbers(5, 8))
    produce(broker, topic, numbers(8, 10), partition=1)
    second = reader.latestOffset(first, ALL)

    assert read_between(reader, start, first) == numbers(0, 5)
    assert read_between(reader, first, second) == numbers(5, 10)
    assert reader.latestOffset(second, ALL) == second
    assert reader.reportLatestOffset() == second
    reader.stop()
    # Another reader goes on from the text alone, as after a restart.
    again = stream_reader(broker, topic)
    assert read_between(again, first, second) == numbers(5, 10)
    again.stop()


def test_a_stream_of_committed_records_stops_before_an_open_transaction(
    broker: EmbeddedBroker, topic: str
) -> None:
    reader = stream_reader(broker, topic, **{"kafka.isolation.level": "read_committed"})
    start = reader.initialOffset()
    servers = broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers, transactional_id=topic) as producer:
        producer.init_transactions()
        produce(broker, topic, [b"plain"])
        producer.begin_transaction()
        producer.send(topic, b"in transaction")
        producer.flush()
        produce(broker, topic, [b"behind"])

        first = reader.latestOffset(start, ALL)
        producer.commit_transaction()
        wait_until(lambda: reader.latestOffset(first, ALL) != first)
        second = reader.latestOffset(first, ALL)

    assert read_between(reader, start, first) == [b"plain"]
    assert read_between(reader, first, second) == [b"in transaction", b"behind"]
    reader.stop()


def test_offsets_are_committed_for_tools_that_look_at_lag(
    broker: EmbeddedBroker, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic(2)
    reader = stream_reader(broker, topic, commitOffsetsToGroup=f"{topic}-lag")
    start = reader.initialOffset()
    produce(broker, topic, numbers(0, 5), partition=1)

    broker.faults.on("OffsetCommit").error("GROUP_AUTHORIZATION_FAILED")
    end = reader.latestOffset(start, ALL)
    assert broker.committed(f"{topic}-lag", topic) == {}
    assert f"not committed to group {topic}-lag" in caplog.text
    wait_until(lambda: reader.latestOffset(end, ALL) and broker.committed(f"{topic}-lag", topic))

    assert broker.committed(f"{topic}-lag", topic) == {0: 0, 1: 5}
    reader.stop()


def test_a_topic_made_anew_is_told_or_read_from_its_start(
    broker: EmbeddedBroker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    produce(broker, topic, numbers(0, 5))
    strict = stream_reader(broker, topic)
    lenient = stream_reader(broker, topic, failOnDataLoss="false")
    start = strict.initialOffset()
    make_anew(broker, topic)
    produce(broker, topic, numbers(10, 13))

    with pytest.raises(DataLossError, match=f"topic {topic} has been deleted and created anew"):
        strict.latestOffset(start, ALL)
    with caplog.at_level(logging.WARNING):
        end = lenient.latestOffset(start, ALL)

    assert "created anew" in caplog.text
    assert read_between(lenient, start, end) == numbers(10, 13)
    assert lenient.latestOffset(end, ALL) == end
    strict.stop()
    lenient.stop()


def test_the_ends_of_logs_are_asked_for_again_while_brokers_are_in_trouble(
    broker: EmbeddedBroker, topic: str
) -> None:
    reader = stream_reader(broker, topic)
    start = reader.initialOffset()
    produce(broker, topic, numbers(0, 5))

    broker.faults.on("ListOffsets", topic=topic).disconnect()
    broker.faults.on("ListOffsets", topic=topic).times(2).error("NOT_LEADER_OR_FOLLOWER")
    end = reader.latestOffset(start, ALL)
    broker.faults.assert_all_fired()
    broker.restart()

    assert reader.latestOffset(end, ALL) == end
    assert read_between(reader, start, end) == numbers(0, 5)
    broker.faults.on("ListOffsets", topic=topic).error("TOPIC_AUTHORIZATION_FAILED")
    with pytest.raises(PipelineError, match=f"did not tell the offsets of {topic}-0"):
        reader.latestOffset(end, ALL)
    reader.stop()


def test_a_topic_that_is_gone_is_left_out_where_that_is_allowed(
    broker: EmbeddedBroker, make_topic: MakeTopic
) -> None:
    stays, goes = make_topic(), make_topic()
    reader = stream_reader(broker, f"{stays},{goes}", failOnDataLoss="false")
    start = reader.initialOffset()
    produce(broker, stays, numbers(0, 3))
    broker.delete_topic(goes)

    end = reader.latestOffset(start, ALL)

    assert read_between(reader, start, end) == numbers(0, 3)
    assert reader.latestOffset(end, ALL) == end
    reader.stop()
