"""format("kafkapy-segments") in a real Spark: the log files of a running broker."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafkapy.testing import BrokerHandle
from tests.helpers.written_topics import CONFIGS, Row, consumed, written_topic

TOPIC = "segments-in-spark"


@pytest.fixture(scope="module")
def broker(spark_broker: BrokerHandle) -> Iterator[BrokerHandle]:
    """With a topic of two partitions that has several small segments each."""
    spark_broker.create_topic(TOPIC, partitions=2, configs=CONFIGS)
    with written_topic(spark_broker.bootstrap_servers, TOPIC, partitions=2):
        yield spark_broker
    spark_broker.delete_topic(TOPIC)


def load(spark: SparkSession, broker: BrokerHandle, **options: Any) -> DataFrame:
    return (
        spark.read.format("kafkapy-segments")
        .options(topic=TOPIC, respectHighWatermark=False, **options)
        .load(str(broker.log_dir))
    )


def as_consumed(frame: DataFrame) -> list[Row]:
    timed = frame.withColumn("timestamp", F.unix_millis("timestamp"))
    return [
        (
            *(None if each is None else bytes(each) for each in (row.key, row.value)),
            *(row.topic, row.partition, row.offset, row.timestamp, row.timestampType),
            row.headers
            and [
                (header.key, None if header.value is None else bytes(header.value))
                for header in row.headers
            ],
        )
        for row in timed.orderBy("partition", "offset").collect()
    ]


def test_rows_are_a_consumer_s(spark: SparkSession, broker: BrokerHandle) -> None:
    everything = load(spark, broker, includeHeaders=True, splitBytes=4000)
    committed = load(spark, broker, includeHeaders=True, isolationLevel="read_committed")

    bootstrap = broker.bootstrap_servers
    assert as_consumed(everything) == consumed(bootstrap, TOPIC, "read_uncommitted")
    assert as_consumed(committed) == consumed(bootstrap, TOPIC, "read_committed")
    assert everything.rdd.getNumPartitions() > 3


def test_a_schema_prunes_columns_and_sql_counts_batches(
    spark: SparkSession, broker: BrokerHandle
) -> None:
    pruned = (
        spark.read.format("kafkapy-segments")
        .schema("offset LONG, value BINARY")
        .option("topic", TOPIC)
        .option("respectHighWatermark", "false")
        .load(str(broker.log_dir))
    )
    load(spark, broker, view="batches").createOrReplaceTempView("batches")
    (row,) = spark.sql(
        "SELECT collect_set(codec) codecs, sum(count) FILTER (WHERE NOT isControl) records, "
        "count_if(crcValid) valid, count(*) total, count(error) errors FROM batches"
    ).collect()

    assert set(row.codecs) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert row.records == pruned.count()
    assert row.valid == row.total
    assert row.errors == 0


def test_an_empty_directory_has_no_rows_and_a_missing_one_is_named(
    spark: SparkSession, tmp_path: Any
) -> None:
    segments = spark.read.format("kafkapy-segments")

    assert segments.load(str(tmp_path)).count() == 0
    with pytest.raises(PySparkException, match=f"path: there is no directory or file {tmp_path}/x"):
        segments.load(str(tmp_path / "x")).count()
    with pytest.raises(PySparkException, match="splitBytes: '0' is not a number of bytes above 0"):
        segments.option("splitBytes", "0").load(str(tmp_path)).count()
