"""spark.read.format("kafkapy")."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.testing.broker_process import BrokerProcess
from tests.pipeline.conftest import MakeTopic
from tests.pipeline.topics import KEPT, numbers, produce


def load(spark: SparkSession, broker: BrokerProcess, topic: str, **options: str) -> DataFrame:
    base = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    return spark.read.format("kafkapy").options(**base | options).load()


def test_a_topic_is_a_table(spark: SparkSession, spark_broker: BrokerProcess, topic: str) -> None:
    produce(spark_broker, topic, numbers(0, 30))
    produce(spark_broker, topic, numbers(30, 40), partition=1)

    frame = load(spark, spark_broker, topic, includeHeaders="true", maxRecordsPerPartition="8")
    narrow = (
        spark.read.format("kafkapy")
        .schema("offset LONG, value BINARY")
        .option("kafka.bootstrap.servers", spark_broker.bootstrap_servers)
        .option("subscribe", topic)
        .load()
    )

    assert frame.schema == spark_schema(include_headers=True)
    rows = frame.withColumn("task", spark_partition_id()).collect()
    assert sorted(bytes(row.value) for row in rows) == sorted(numbers(0, 40))
    assert {row.task for row in rows} == set(range(6))
    assert {(row.topic, row.timestampType, row.key, row.headers) for row in rows} == {
        (topic, 0, None, None)
    }
    assert narrow.columns == ["offset", "value"]
    assert sorted(bytes(row.value) for row in narrow.where("offset >= 8").collect()) == sorted(
        numbers(8, 30) + numbers(38, 40)
    )


def test_filters_are_pushed_where_that_is_asked_for(
    spark: SparkSession, spark_broker: BrokerProcess, make_topic: MakeTopic
) -> None:
    topic = make_topic(2, configs=KEPT)
    produce(spark_broker, topic, numbers(0, 5), timestamp_ms=1_000)
    produce(spark_broker, topic, numbers(5, 9), timestamp_ms=5_000)
    produce(spark_broker, topic, numbers(10, 20), partition=1, timestamp_ms=1_000)

    def where(condition: str, **options: str) -> tuple[list[bytes], set[int]]:
        """What is found, and by which tasks."""
        frame = load(spark, spark_broker, topic, maxRecordsPerPartition="2", **options)
        rows = frame.where(condition).withColumn("task", spark_partition_id()).collect()
        return [bytes(row.value) for row in rows], {row.task for row in rows}

    some = "partition = 0 and offset > 2 and offset <= 6 and length(value) = 1"
    since = "timestamp >= timestamp_millis(4000)"
    assert where(some) == (numbers(3, 7), {2, 3})
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert where(some, pushFilters="true") == (numbers(3, 7), {0, 1})
        assert where(since, pushFilters="true") == (numbers(5, 9), {0, 1})
        assert where(since) == (numbers(5, 9), {3, 4})
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_what_is_wrong_is_told_in_one_line(
    spark: SparkSession, spark_broker: BrokerProcess, topic: str
) -> None:
    with pytest.raises(PySparkException, match="OptionError: startingOffsets: expected JSON"):
        load(spark, spark_broker, topic, startingOffsets="soon").count()
    with pytest.raises(PySparkException, match="OptionError: subscribe: does not exist: nowhere"):
        load(spark, spark_broker, "nowhere").count()
