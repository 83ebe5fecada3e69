"""Records out of segment files."""

from __future__ import annotations

import logging
import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.record_batch import LOG_OVERHEAD, OFFSET_LENGTH
from kafkapy.pipeline.columnar.record_columns_decoder import LostFramingError, RecordColumnsDecoder
from kafkapy.pipeline.columnar.record_schema import RecordSchema
from kafkapy.pipeline.pipeline_errors import CorruptDataError, DataLossError
from kafkapy.pipeline.segments.segment_files import segments_of
from kafkapy.pipeline.segments.segment_index import offset_entries
from kafkapy.pipeline.segments.segment_options import SegmentOptions
from kafkapy.pipeline.segments.segment_planner import SegmentPlanner
from kafkapy.pipeline.segments.segment_scan import next_boundary, opened
from kafkapy.pipeline.segments.segment_split import SegmentRange, SegmentSplit

log = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 4 * 1024 * 1024
_LENGTH: Final = struct.Struct(">i")


class SegmentReader(DataSourceReader):
    """Plans on the driver and reads on the workers; picklable, without state between calls."""

    def __init__(self, options: SegmentOptions, schema: StructType) -> None:
        self._options = options
        self._schema = RecordSchema.of_spark(schema)

    def partitions(self) -> list[InputPartition]:
        return [*SegmentPlanner(self._options).splits()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises CorruptDataError, or DataLossError for files that were deleted meanwhile."""
        # Without a split Spark asks for one that holds nothing, to have something to ask for.
        if isinstance(partition, SegmentSplit):
            yield from _SplitReading(partition, self._options, self._schema).record_batches()


class _SplitReading:
    """One split on its way through a decoder; not thread-safe."""

    def __init__(self, split: SegmentSplit, options: SegmentOptions, schema: RecordSchema) -> None:
        self._split = split
        self._options = options
        self._schema = schema
        self._ranges = current_ranges(split)
        self._decoder = self._decoder_from(split.start_offset)
        self._left_out = 0

    def _decoder_from(self, start_offset: int) -> RecordColumnsDecoder:
        decoder = RecordColumnsDecoder(
            self._split.topic_partition,
            self._schema,
            start_offset=start_offset,
            end_offset=self._split.end_offset,
            check_crcs=self._options.check_crcs,
            read_committed=self._options.read_committed,
            on_corrupt=self._on_corrupt_batch,
        )
        decoder.add_aborted(self._split.aborted)
        return decoder

    def record_batches(self) -> Iterator[pa.RecordBatch]:
        number = 0
        end = self._split.end_offset
        while number < len(self._ranges) and self._decoder.next_offset < end:
            range_ = self._ranges[number]
            number += 1
            with ExitStack() as stack:
                try:
                    records = stack.enter_context(opened(range_.segment))
                except DataLossError:
                    # Compacted since: what comes next is elsewhere, before records already read.
                    yield from self._decoder.finish()
                    reached = self._decoder.next_offset
                    self._ranges = current_ranges(replace(self._split, start_offset=reached))
                    self._decoder = self._decoder_from(reached)
                    number = 0
                    continue
                yield from self._range(records, range_)
        yield from self._decoder.finish()
        if self._left_out:
            log.warning(
                "%s: %d corrupt batches between the offsets %d and %d were left out",
                self._split.topic_partition,
                self._left_out,
                self._split.start_offset,
                self._split.end_offset,
            )

    def _range(self, records: FileRecords, range_: SegmentRange) -> Iterator[pa.RecordBatch]:
        decoder = self._decoder
        position = range_.position
        wanted = _CHUNK_BYTES
        while position < range_.end_position and decoder.next_offset < self._split.end_offset:
            remaining = range_.end_position - position
            chunk = _read(records, position, min(wanted, remaining))
            wanted = _CHUNK_BYTES
            try:
                yield from decoder.decode(chunk)
                position += decoder.consumed_bytes
                if decoder.consumed_bytes or decoder.next_offset >= self._split.end_offset:
                    continue
                wanted = _size_of_first(chunk)
                if wanted > remaining:
                    raise LostFramingError(
                        f"{self._split.topic_partition}: the batch behind offset "
                        f"{decoder.next_offset - 1} declares more bytes than there are"
                    )
            except LostFramingError as error:
                position += decoder.consumed_bytes
                self._report(range_.segment.path, f"at byte {position}: {error}")
                # Where it ends is unknown, but the index knows batches behind it.
                entries = offset_entries(range_.segment)
                following = next_boundary(records, entries, position + 1)
                position = range_.end_position if following is None else following.position
                wanted = _CHUNK_BYTES

    def _on_corrupt_batch(self, offset: int, reason: str) -> None:
        bases = [range_.segment.base_offset for range_ in self._ranges]
        path = self._ranges[max(bisect_right(bases, offset) - 1, 0)].segment.path
        self._report(
            path,
            f"{self._split.topic_partition}: the batch at offset {offset} is corrupt: {reason}",
        )

    def _report(self, path: str, what: str) -> None:
        if self._options.fail_on_corruption:
            raise CorruptDataError(f"{path}: {what}")
        self._left_out += 1
        log.warning("%s: %s; it is left out", path, what)


def current_ranges(split: SegmentSplit) -> tuple[SegmentRange, ...]:
    """The split's ranges, or the same offsets elsewhere if a broker has compacted them meanwhile.

    Raises DataLossError if they are gone.
    """
    if all(range_.segment.is_current for range_ in split.ranges):
        return split.ranges
    directory = os.path.dirname(split.ranges[0].segment.path)
    segments = segments_of(directory)
    if not segments or segments[0].base_offset > split.start_offset:
        raise DataLossError(
            f"{split.topic_partition}: the records from offset {split.start_offset} on have been "
            f"deleted from {directory} since the query was planned"
        )
    ends = [segment.base_offset for segment in segments[1:]] + [split.end_offset + 1]
    return tuple(
        SegmentRange(segment, 0, segment.size)
        for segment, end in zip(segments, ends, strict=True)
        if segment.base_offset < split.end_offset and end > split.start_offset
    )


def _read(records: FileRecords, position: int, size: int) -> bytes:
    data = records.read(position, size)
    if len(data) < size:
        raise DataLossError(f"{records.path} has become shorter while it was read")
    return data


def _size_of_first(chunk: bytes) -> int:
    """Of the batch that a chunk is too short for; a chunk shorter than that field is too."""
    if len(chunk) < LOG_OVERHEAD:
        return LOG_OVERHEAD
    (length,) = _LENGTH.unpack_from(chunk, OFFSET_LENGTH)
    return LOG_OVERHEAD + int(length)
