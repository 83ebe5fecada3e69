"""Has Spark find format("kafkapy") by itself: it looks for DefaultSource in modules pyspark_*."""

from kafkapy.pipeline.spark.kafka_data_source import KafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
