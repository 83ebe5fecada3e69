"""Has Spark find format("kafkapy-segments") by itself, as pyspark_kafkapy does its source."""

from importlib.util import find_spec

if find_spec("numpy") is not None and find_spec("pyarrow") is not None:
    from kafkapy.pipeline.segments.segment_data_source import (  # noqa: F401
        SegmentDataSource as DefaultSource,
    )
