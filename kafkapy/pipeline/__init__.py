"""Topics in Spark and back: data sources for PySpark, and pipelines declared in one file.

columnar    records of Kafka's batches as Arrow columns
source      format("kafkapy"): topics read in batches and in streams
sink        format("kafkapy"): rows written to topics, exactly once if asked for
segments    format("kafkapy-segments"): a broker's log files read from disk
spark       Java, sessions, registration
jobs        kafka-pipeline: pipelines declared in a file, and what one sees of them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Makes format("kafkapy") and format("kafkapy-segments") known to a session. Idempotent."""
    from kafkapy.pipeline.spark.registration import register_data_sources

    register_data_sources(spark)
