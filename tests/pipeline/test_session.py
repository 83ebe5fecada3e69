"""The session that everything else in here runs on."""

from pyspark.sql import SparkSession


def test_a_session_computes(spark: SparkSession) -> None:
    assert spark.range(10).count() == 10
