"""spark.readStream.format("kafkapy")."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

import kafkapy.pipeline
from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.pipeline.jobs.failure_cause import failure_cause
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.plain_stream_reader import PlainStreamReader
from kafkapy.pipeline.spark.kafka_data_source import HAS_LIMITS, KafkaDataSource
from kafkapy.pipeline.spark.registration import SET_BY_STREAMS
from kafkapy.testing.broker_process import BrokerProcess
from tests.helpers.spark import needs_limits
from tests.helpers.waiting import wait_until
from tests.pipeline.topics import numbers, produce

TIMEOUT_S = 90
REFUSED = {"endingTimestamp": "a stream has no end; this is for batches"}
if not HAS_LIMITS:
    REFUSED["maxOffsetsPerTrigger"] = "Spark 4.2 or newer is needed: this one takes no limits"


def load(
    spark: SparkSession,
    broker: BrokerProcess,
    topic: str,
    *,
    source: str = "kafkapy",
    **options: str,
) -> DataFrame:
    base = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }
    return spark.readStream.format(source).options(**base | options).load()


def start(frame: DataFrame, directory: Path, **trigger: Any) -> StreamingQuery:
    writer = frame.writeStream.format("parquet").option("path", str(directory / "out"))
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    return (writer.trigger(**trigger) if trigger else writer).start()


def written(spark: SparkSession, directory: Path) -> list[bytes]:
    rows = spark.read.parquet(str(directory / "out")).collect()
    return [bytes(row.value) for row in sorted(rows, key=lambda row: (row.partition, row.offset))]


@needs_limits
def test_available_now_reads_what_is_there_in_limited_batches_and_goes_on_later(
    spark: SparkSession, spark_broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    group = f"{topic}-lag"
    produce(spark_broker, topic, numbers(0, 40))
    produce(spark_broker, topic, numbers(40, 50), partition=1)
    frame = load(spark, spark_broker, topic, maxOffsetsPerTrigger="20", commitOffsetsToGroup=group)

    query = start(frame, tmp_path, availableNow=True)
    assert query.awaitTermination(TIMEOUT_S)
    assert written(spark, tmp_path) == numbers(0, 50)
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [20, 20, 10]
    source = query.recentProgress[0].sources[0]
    assert '"offsets":{"0":40,"1":10}' in str(source.latestOffset).replace(" ", "")
    assert spark_broker.committed(group, topic) == {0: 40, 1: 10}

    with AdminClient(bootstrap_servers=spark_broker.bootstrap_servers) as admin:
        admin.create_partitions({topic: 3})
    produce(spark_broker, topic, numbers(50, 55), partition=2)
    again = start(frame, tmp_path, availableNow=True)

    assert again.awaitTermination(TIMEOUT_S)
    assert written(spark, tmp_path) == numbers(0, 55)
    assert spark_broker.committed(group, topic) == {0: 40, 1: 10, 2: 5}


def test_streams_add_nothing_to_the_environment_that_they_share(
    spark: SparkSession, spark_broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    session = spark.newSession()
    kafkapy.pipeline.register(session)
    before = _source_environment(session)
    produce(spark_broker, topic, numbers(0, 10))

    query = start(load(session, spark_broker, topic), tmp_path, availableNow=True)
    assert query.awaitTermination(TIMEOUT_S)

    assert written(session, tmp_path) == numbers(0, 10)
    after = _source_environment(session)
    assert before.keys() == after.keys()
    # The stream has been at this map, and what it put there is there instead of ours.
    assert after["SPARK_LOCAL_DIRS"] != before["SPARK_LOCAL_DIRS"] == ""
    assert not any(name in spark.sparkContext.environment for name in SET_BY_STREAMS)


def test_a_stream_without_limits_takes_what_is_there_and_goes_on_later(
    spark: SparkSession, spark_broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    class PlainDataSource(KafkaDataSource):
        """As with Spark 4.1."""

        @classmethod
        def name(cls) -> str:
            return "kafkapy-plain"

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:
            return PlainStreamReader(SourceOptions.for_stream(self.options), schema)

    spark.dataSource.register(PlainDataSource)
    group = f"{topic}-lag"
    produce(spark_broker, topic, numbers(0, 40))
    options = {"source": PlainDataSource.name(), "commitOffsetsToGroup": group}
    frame = load(spark, spark_broker, topic, **options)

    query = start(frame, tmp_path, availableNow=True)
    assert query.awaitTermination(TIMEOUT_S)
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [40]

    again = start(frame, tmp_path)
    try:
        produce(spark_broker, topic, numbers(40, 50), partition=1)
        wait_until(lambda: _rows(again) == 10, timeout=TIMEOUT_S)
        wait_until(lambda: spark_broker.committed(group, topic) == {0: 40, 1: 10})
    finally:
        again.stop()
    assert written(spark, tmp_path) == numbers(0, 50)


@pytest.mark.parametrize(("option", "reason"), REFUSED.items())
def test_an_option_that_is_refused_is_what_the_query_ends_with(
    spark: SparkSession, spark_broker: BrokerProcess, topic: str, tmp_path: Path,
    option: str, reason: str,
) -> None:  # fmt: skip
    query = start(load(spark, spark_broker, topic, **{option: "5"}), tmp_path)

    wait_until(lambda: not query.isActive, timeout=TIMEOUT_S)

    error = query.exception()
    assert error is not None
    assert failure_cause(error) == f"{option}: {reason}"


def test_a_stream_follows_a_topic_through_faults_and_new_partitions(
    spark: SparkSession, spark_broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    produce(spark_broker, topic, numbers(0, 10))
    query = start(load(spark, spark_broker, topic), tmp_path)
    try:
        wait_until(lambda: _rows(query) == 10, timeout=TIMEOUT_S)
        with AdminClient(bootstrap_servers=spark_broker.bootstrap_servers) as admin:
            admin.create_partitions({topic: 3})
        spark_broker.faults.on("ListOffsets", topic=topic).times(2).error("NOT_LEADER_OR_FOLLOWER")
        spark_broker.faults.on("Fetch", topic=topic).disconnect()
        produce(spark_broker, topic, numbers(10, 15), partition=2)
        wait_until(lambda: _rows(query) == 15, timeout=TIMEOUT_S)
    finally:
        query.stop()
    assert written(spark, tmp_path) == numbers(0, 15)
    spark_broker.faults.assert_all_fired()


def _rows(query: StreamingQuery) -> int:
    error = query.exception()
    assert error is None, error
    return sum(progress.numInputRows for progress in query.recentProgress)


def _source_environment(spark: SparkSession) -> dict[str, str]:
    """Of the source as the session knows it; one for all its streams."""
    state: Any = spark._jsparkSession.sessionState()
    source = state.dataSourceManager().lookupDataSource("kafkapy")
    return dict(source.dataSourceCls().envVars())
