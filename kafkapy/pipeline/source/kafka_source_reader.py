"""Batches of format("kafkapy")."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from kafkapy.pipeline.columnar.record_schema import RecordSchema
from kafkapy.pipeline.source.kafka_offset_reader import KafkaOffsetReader
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.offset_range import KafkaInputPartition
from kafkapy.pipeline.source.offset_range_calculator import OffsetRangeCalculator
from kafkapy.pipeline.source.offset_range_fetcher import OffsetRangeFetcher
from kafkapy.pipeline.source.offset_range_planner import OffsetRangePlanner
from kafkapy.pipeline.source.pushed_filters import PushedFilters
from kafkapy.utils.time import SystemTime


class KafkaBatchReader(DataSourceReader):
    """Plans a batch on the driver, and reads a range of it in each task. Picklable.

    Ports: org.apache.spark.sql.kafka010.KafkaRelation
    """

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options  # constant after construction
        self._schema = RecordSchema.of_spark(schema)
        self._filters = PushedFilters()

    def partitions(self) -> list[InputPartition]:
        """A task each; the ends of the logs are those of now."""
        options = self._options
        with KafkaOffsetReader(options, SystemTime()) as reader:
            ranges = OffsetRangePlanner(options, reader).batch_ranges()
            ranges = self._filters.narrow(ranges, reader.at_times)
        calculator = OffsetRangeCalculator(
            options.min_partitions, options.max_records_per_partition
        )
        return [KafkaInputPartition(offset_range) for offset_range in calculator.ranges(ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Where nothing is to be read Spark makes up a partition of its own.
        if isinstance(partition, KafkaInputPartition):
            fetcher = OffsetRangeFetcher(
                partition.offset_range, self._schema, self._options, SystemTime()
            )
            yield from fetcher.record_batches()


class FilteringKafkaBatchReader(KafkaBatchReader):
    """Takes filters from Spark, and reads only what they leave.

    A class of its own, for those who ask for it: Spark refuses a reader with this method unless
    spark.sql.python.filterPushdown.enabled is true, even if nobody filters. Where it is, Spark may
    answer a later query of the same DataFrame that has no filter with the plan of one that had.
    """

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        """Those that Spark still has to apply."""
        self._filters, left = self._filters.push(filters)
        return left


def source_reader(options: SourceOptions, schema: StructType) -> KafkaBatchReader:
    """The reader that the options ask for."""
    reader = FilteringKafkaBatchReader if options.push_filters else KafkaBatchReader
    return reader(options, schema)
