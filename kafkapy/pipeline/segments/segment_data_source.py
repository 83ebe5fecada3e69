"""format("kafkapy-segments")."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.pipeline.segments.batch_view import BATCH_SCHEMA, BatchReader
from kafkapy.pipeline.segments.segment_options import SegmentOptions, View
from kafkapy.pipeline.segments.segment_reader import SegmentReader


class SegmentDataSource(DataSource):
    """A broker's log directories, partition directories or segment files, read from disk.

    Rows are records, with the columns of format("kafkapy"), or with `view=batches` batches.
    """

    @classmethod
    def name(cls) -> str:
        return "kafkapy-segments"

    def schema(self) -> StructType:
        options = SegmentOptions.of(self.options)
        if options.view is View.BATCHES:
            return BATCH_SCHEMA
        return spark_schema(include_headers=options.include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = SegmentOptions.of(self.options)
        if options.view is View.BATCHES:
            return BatchReader(options, schema)
        return SegmentReader(options, schema)
