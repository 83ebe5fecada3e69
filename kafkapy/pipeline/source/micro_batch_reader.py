"""What every stream of format("kafkapy") does, whichever Spark plans its micro-batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from kafkapy.common.errors import KafkaError
from kafkapy.pipeline.columnar.record_schema import RecordSchema
from kafkapy.pipeline.source.kafka_offset_reader import KafkaOffsetReader
from kafkapy.pipeline.source.kafka_source_offset import KafkaSourceOffset
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.offset_range import KafkaInputPartition
from kafkapy.pipeline.source.offset_range_calculator import OffsetRangeCalculator
from kafkapy.pipeline.source.offset_range_planner import OffsetRangePlanner
from kafkapy.utils.time import SystemTime, Time

logger = logging.getLogger(__name__)

# Spark asks again every few milliseconds while there is nothing new.
_IDLE_INTERVAL_MS = 100
_COMMIT_RETRY_MS = 1_000


class MicroBatchReader(DataSourceStreamReader):
    """Splits micro-batches on the driver, and reads a range of one in each task. For one thread.

    How far a batch goes is for those that are made of it to say. Only what it was told is pickled:
    connections are made where they are used.

    Ports: org.apache.spark.sql.kafka010.KafkaMicroBatchStream
    """

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        *,
        time: Time | None = None,
        offset_reader: KafkaOffsetReader | None = None,
    ) -> None:
        # constant after construction
        self._options = options
        self._spark_schema = schema
        self._schema = RecordSchema.of_spark(schema)
        self._time = time or SystemTime()
        self._reader = offset_reader or KafkaOffsetReader(options, self._time)
        self._planner = OffsetRangePlanner(options, self._reader)

        self._idle_since_ms: int | None = None
        self._shown: KafkaSourceOffset | None = None  # what the group has been told
        self._show_again_at_ms = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._options, self._spark_schema)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        options = self._options
        ranges = self._planner.stream_ranges(
            KafkaSourceOffset.from_json(start), KafkaSourceOffset.from_json(end)
        )
        calculator = OffsetRangeCalculator(
            options.min_partitions, options.max_records_per_partition
        )
        return [KafkaInputPartition(offset_range) for offset_range in calculator.ranges(ranges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # In tasks only: the process that plans batches starts sooner without what decodes records.
        from kafkapy.pipeline.source.offset_range_fetcher import OffsetRangeFetcher

        assert isinstance(partition, KafkaInputPartition)
        fetcher = OffsetRangeFetcher(
            partition.offset_range, self._schema, self._options, SystemTime()
        )
        yield from fetcher.record_batches()

    def commit(self, end: dict[str, Any]) -> None:
        self._show_group(KafkaSourceOffset.from_json(end))

    def stop(self) -> None:
        self._reader.close()

    def _show_group(self, reached: KafkaSourceOffset) -> None:
        """Commit for tools that look at a group's lag; what Spark goes by is its checkpoint."""
        group = self._options.commit_offsets_to_group
        now_ms = self._time.hi_res_clock_ms()
        if group is None or reached == self._shown or now_ms < self._show_again_at_ms:
            return
        try:
            self._reader.commit_to_group(group, reached.offsets)
            self._shown = reached
        except KafkaError as error:
            logger.warning("Offsets are not committed to group %s: %s", group, error)
            self._show_again_at_ms = now_ms + _COMMIT_RETRY_MS

    def _note_idle(self, *, is_idle: bool) -> None:
        self._idle_since_ms = self._time.hi_res_clock_ms() if is_idle else None

    def _wait_while_idle(self) -> None:
        if self._idle_since_ms is not None:
            passed_ms = self._time.hi_res_clock_ms() - self._idle_since_ms
            self._time.sleep(max(0, _IDLE_INTERVAL_MS - passed_ms))
