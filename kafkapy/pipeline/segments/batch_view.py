"""A row for each batch of the segments, sound or not: what an audit of a log looks at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kafkapy.common.errors import ApiError
from kafkapy.common.record.file_channel_record_batch import FileChannelRecordBatch
from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.record_batch import DELETE_HORIZON_FLAG_MASK, MAGIC_VALUE_V2
from kafkapy.pipeline.columnar.arrow_types import arrow_schema
from kafkapy.pipeline.pipeline_errors import SchemaError
from kafkapy.pipeline.segments.segment_index import offset_entries
from kafkapy.pipeline.segments.segment_options import SegmentOptions
from kafkapy.pipeline.segments.segment_planner import SegmentPlanner
from kafkapy.pipeline.segments.segment_reader import current_ranges
from kafkapy.pipeline.segments.segment_scan import SegmentScan, next_boundary, opened
from kafkapy.pipeline.segments.segment_split import SegmentRange, SegmentSplit

BATCH_SCHEMA: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("baseOffset", LongType()),
        StructField("lastOffset", LongType()),
        StructField("count", IntegerType()),  # null for magic 0 and 1
        StructField("magic", IntegerType()),
        StructField("codec", StringType()),
        StructField("timestampType", IntegerType()),
        StructField("firstTimestamp", TimestampType()),
        StructField("maxTimestamp", TimestampType()),
        StructField("producerId", LongType()),
        StructField("producerEpoch", IntegerType()),
        StructField("baseSequence", IntegerType()),
        StructField("isTransactional", BooleanType()),
        StructField("isControl", BooleanType()),
        StructField("leaderEpoch", IntegerType()),
        StructField("sizeInBytes", IntegerType()),
        StructField("position", LongType()),
        StructField("file", StringType()),
        StructField("crcValid", BooleanType()),  # null if it was not looked at
        StructField("error", StringType()),
    ]
)

_ROWS: Final = 5_000

Row: TypeAlias = dict[str, Any]


class BatchReader(DataSourceReader):
    """Plans on the driver and reads on the workers; picklable, without state between calls.

    What is not a batch is a row too, with its position and an error. Reading goes on behind it at
    the next batch that the index knows.
    """

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        for field in schema.fields:
            if field.name not in BATCH_SCHEMA.fieldNames():
                raise SchemaError(
                    f"column {field.name}: there is no such column; there are "
                    f"{', '.join(BATCH_SCHEMA.fieldNames())}"
                )
            data_type = BATCH_SCHEMA[field.name].dataType
            if field.dataType != data_type:
                raise SchemaError(
                    f"column {field.name}: its type is {data_type.simpleString()}, not "
                    f"{field.dataType.simpleString()}"
                )
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [*SegmentPlanner(self._options).splits()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, SegmentSplit):
            return
        schema = arrow_schema(self._schema)
        rows: list[Row] = []
        for row in self._rows(partition):
            rows.append(row)
            if len(rows) == _ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema)

    def _rows(self, split: SegmentSplit) -> Iterator[Row]:
        for range_ in current_ranges(split):
            with opened(range_.segment) as records:
                for row in self._rows_of(records, range_):
                    base, last = row["baseOffset"], row["lastOffset"]
                    if base is None or (base < split.end_offset and last >= split.start_offset):
                        topic, partition = split.topic_partition
                        yield row | {"topic": topic, "partition": partition}

    def _rows_of(self, records: FileRecords, range_: SegmentRange) -> Iterator[Row]:
        position = range_.position
        end = range_.end_position
        while position < end:
            scan = SegmentScan(records, position)
            for batch in scan:
                if batch.position >= end:
                    return
                yield self._row(batch) | {"file": range_.segment.path}
            position = scan.position
            if position >= end:
                return
            error = scan.error or "the file ends inside this batch"
            yield {
                "baseOffset": None,
                "lastOffset": None,
                "position": position,
                "file": range_.segment.path,
                "error": error,
            }
            following = next_boundary(records, offset_entries(range_.segment), position + 1)
            position = end if following is None else following.position

    def _row(self, batch: FileChannelRecordBatch) -> Row:
        crc_valid: bool | None = None
        error: str | None = None
        hides_base_offset = batch.magic < MAGIC_VALUE_V2 and batch.is_compressed
        base_offset = batch.last_offset if hides_base_offset else batch.base_offset
        codec: str | None = None
        try:
            codec = batch.compression_type.codec_name
            if self._options.check_crcs:
                crc_valid = False
                batch.ensure_valid()
                crc_valid = True
            base_offset = batch.base_offset
        except ApiError as found:
            error = str(found)
        return {
            "baseOffset": base_offset,
            "lastOffset": batch.last_offset,
            "count": batch.count,
            "magic": batch.magic,
            "codec": codec,
            "timestampType": int(batch.timestamp_type),
            "firstTimestamp": _microseconds(_first_timestamp(batch)),
            "maxTimestamp": _microseconds(batch.max_timestamp),
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "baseSequence": batch.base_sequence,
            "isTransactional": batch.is_transactional,
            "isControl": batch.is_control_batch,
            "leaderEpoch": batch.leader_epoch,
            "sizeInBytes": batch.size_in_bytes,
            "position": batch.position,
            "crcValid": crc_valid,
            "error": error,
        }


def _first_timestamp(batch: FileChannelRecordBatch) -> int:
    """-1 where the header does not say it: compaction may have put something else in its place."""
    if batch.magic < MAGIC_VALUE_V2:
        return -1 if batch.is_compressed else batch.max_timestamp
    return -1 if batch.attributes & DELETE_HORIZON_FLAG_MASK else batch.base_timestamp


def _microseconds(timestamp_ms: int) -> int | None:
    """Null for none, and for what Spark cannot hold."""
    return timestamp_ms * 1000 if 0 <= timestamp_ms <= (2**63 - 1) // 1000 else None
