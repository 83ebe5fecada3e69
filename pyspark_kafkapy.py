"""Has Spark find format("kafkapy") by itself: it looks for DefaultSource in modules pyspark_*."""

from importlib.util import find_spec

# Spark imports this wherever kafkapy is installed. Without what the extra "spark" brings there is
# no source here, and those of others must be found all the same.
if find_spec("numpy") is not None and find_spec("pyarrow") is not None:
    from kafkapy.pipeline.spark.kafka_data_source import (  # noqa: F401
        KafkaDataSource as DefaultSource,
    )
