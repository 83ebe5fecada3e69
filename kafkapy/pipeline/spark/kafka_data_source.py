"""format("kafkapy"): which class reads and which writes."""

from __future__ import annotations

from importlib.util import find_spec

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.sink.kafka_sink_options import SinkOptions
from kafkapy.pipeline.sink.kafka_stream_writer import KafkaStreamWriter
from kafkapy.pipeline.sink.kafka_writer import KafkaWriter
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.kafka_source_reader import source_reader
from kafkapy.pipeline.source.plain_stream_reader import PlainStreamReader
from kafkapy.pipeline.source.refused_stream_reader import RefusedStreamReader

# Whether this Spark tells a stream how much to take; 4.1 does not.
HAS_LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None


class KafkaDataSource(DataSource):
    """Topics as tables: read in batches or as streams, and written to.

    Ports: org.apache.spark.sql.kafka010.KafkaSourceProvider
    """

    @classmethod
    def name(cls) -> str:
        return "kafkapy"

    def schema(self) -> StructType:
        # Whether it is for a batch or for a stream, and so which options are right, is not known.
        include_headers = self.options.get("includeHeaders", "false").strip().lower() == "true"
        return spark_schema(include_headers=include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        return source_reader(SourceOptions.for_batch(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            options = SourceOptions.for_stream(self.options, has_limits=HAS_LIMITS)
            if not HAS_LIMITS:
                return PlainStreamReader(options, schema)
            # Here alone: it stands on what Spark 4.1 has not got.
            from kafkapy.pipeline.source.kafka_stream_reader import KafkaStreamReader

            return KafkaStreamReader(options, schema)
        except PipelineError as error:
            return RefusedStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return KafkaWriter(SinkOptions.of(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return KafkaStreamWriter(SinkOptions.of(self.options), schema)
