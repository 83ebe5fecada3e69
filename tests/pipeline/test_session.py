"""The session that everything else in here runs on."""

import os
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import kafkapy.pipeline
from kafkapy.pipeline.spark.spark_session_factory import spark_session

ROOT = Path(__file__).parents[2]


def test_a_second_session_is_the_first(spark: SparkSession) -> None:
    again = spark_session(app_name="again", conf={"spark.sql.shuffle.partitions": "2"})

    assert again.sparkContext is spark.sparkContext
    assert again.range(10).count() == 10


def test_the_workers_are_of_this_python_and_on_loopback(spark: SparkSession) -> None:
    # The installed pyspark, not the zip that Spark brings.
    found = spark.sparkContext.parallelize([0], 1).map(
        lambda _: (sys.executable, sys.modules["pyspark"].__file__)
    )

    assert found.collect() == [(sys.executable, pyspark.__file__)]
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert spark.conf.get("spark.driver.host") in ("127.0.0.1", "localhost")


@pytest.mark.parametrize(
    ("source", "missing"),
    [("kafkapy", "kafka.bootstrap.servers"), ("kafkapy-segments", "path")],
)
def test_registering_again_changes_nothing(spark: SparkSession, source: str, missing: str) -> None:
    kafkapy.pipeline.register(spark)

    # It is our source that says so: Spark knows its name.
    with pytest.raises(AnalysisException, match=missing):
        spark.read.format(source).load().collect()


def test_nothing_is_left_in_the_checkout(spark: SparkSession) -> None:
    spark.range(3).write.format("noop").mode("overwrite").save()
    spark.sql("SELECT 1").collect()

    left = ("spark-warehouse", "metastore_db", "derby.log", "artifacts")
    assert [name for name in left if (ROOT / name).exists()] == []
