"""The data sources by their names, in one Spark session."""

from __future__ import annotations

from importlib.util import find_spec

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from kafkapy.pipeline.spark.kafka_data_source import KafkaDataSource


def register_data_sources(spark: SparkSession) -> None:
    """Makes format("kafkapy") and format("kafkapy-segments") known. Idempotent."""
    for source in _data_sources():
        spark.dataSource.register(source)


def _data_sources() -> list[type[DataSource]]:
    if find_spec("kafkapy.pipeline.segments") is None:
        return [KafkaDataSource]
    from kafkapy.pipeline.segments.segment_data_source import SegmentDataSource

    return [KafkaDataSource, SegmentDataSource]
