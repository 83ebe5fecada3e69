"""The share of one task."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.segments.segment_files import SegmentFile
from kafkapy.storage.transaction_index import AbortedTxn


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """Whole batches of one segment file, from a position to another."""

    segment: SegmentFile
    position: int
    end_position: int


@dataclass(frozen=True)
class SegmentSplit(InputPartition):
    """Ranges that follow each other in one partition; immutable and picklable.

    Of their records those within the offsets are wanted.
    """

    topic_partition: TopicPartition
    ranges: tuple[SegmentRange, ...]
    start_offset: int
    end_offset: int
    aborted: tuple[AbortedTxn, ...] = ()
