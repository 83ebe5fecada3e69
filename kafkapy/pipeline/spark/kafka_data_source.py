"""format("kafkapy"): which class reads and which writes."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.pipeline.sink.kafka_sink_options import SinkOptions
from kafkapy.pipeline.sink.kafka_stream_writer import KafkaStreamWriter
from kafkapy.pipeline.sink.kafka_writer import KafkaWriter
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.kafka_source_reader import source_reader
from kafkapy.pipeline.source.kafka_stream_reader import KafkaStreamReader


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
        return KafkaStreamReader(SourceOptions.for_stream(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return KafkaWriter(SinkOptions.of(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return KafkaStreamWriter(SinkOptions.of(self.options), schema)
