"""The data sources by their names, in one Spark session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from kafkapy.pipeline.segments.segment_data_source import SegmentDataSource
from kafkapy.pipeline.spark.kafka_data_source import KafkaDataSource


def register_data_sources(spark: SparkSession) -> None:
    """Makes format("kafkapy") and format("kafkapy-segments") known. Idempotent."""
    for source in (KafkaDataSource, SegmentDataSource):
        spark.dataSource.register(source)
