"""Has Spark find format("kafkapy-segments") by itself, as pyspark_kafkapy does its source."""

from kafkapy.pipeline.segments.segment_data_source import SegmentDataSource as DefaultSource

__all__ = ["DefaultSource"]
