"""Sharing out the segments of many partitions among tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kafkapy.common.record.file_records import FileRecords
from kafkapy.pipeline.pipeline_errors import DataLossError
from kafkapy.pipeline.segments.log_tail import LogTail, find_log_tail
from kafkapy.pipeline.segments.segment_files import PartitionLog, SegmentFile, find_partition_logs
from kafkapy.pipeline.segments.segment_index import offset_entries
from kafkapy.pipeline.segments.segment_options import OffsetBound, SegmentOptions, View
from kafkapy.pipeline.segments.segment_scan import batch_at, floor_position, next_boundary, opened
from kafkapy.pipeline.segments.segment_split import SegmentRange, SegmentSplit
from kafkapy.pipeline.segments.timestamp_lookup import first_offset_since
from kafkapy.pipeline.segments.transaction_bounds import TransactionBounds, find_transaction_bounds

_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class _Piece:
    """A range, and the first offset that it can hold."""

    range: SegmentRange
    start_offset: int

    @property
    def size(self) -> int:
        return self.range.end_position - self.range.position


class SegmentPlanner:
    """Finds what is to be read, and cuts it where batches begin; not thread-safe.

    Each wanted record is in exactly one split. Splits are about `splitBytes` long: a large segment
    is cut at entries of its index, or not at all if it has none, and small ones are put together.
    """

    def __init__(self, options: SegmentOptions) -> None:
        self._options = options

    def splits(self) -> list[SegmentSplit]:
        """Raises OptionError for a path that cannot be read."""
        return [split for log in self._find_logs() for split in self._planned(log)]

    def _find_logs(self) -> list[PartitionLog]:
        return find_partition_logs(
            self._options.paths,
            wanted=self._options.wants,
            lone_file=self._options.only_partition,
        )

    def _planned(self, log: PartitionLog) -> list[SegmentSplit]:
        """As the log is now: a live broker compacts and deletes what was just found."""
        attempts = 1
        while True:
            try:
                return list(self._splits_of(log))
            except (DataLossError, FileNotFoundError) as error:
                again = {found.topic_partition: found for found in self._find_logs()}
                if log.topic_partition not in again or attempts == _ATTEMPTS:
                    raise DataLossError(f"{log.topic_partition}: {error}") from error
                log = again[log.topic_partition]
                attempts += 1

    def _splits_of(self, log: PartitionLog) -> Iterator[SegmentSplit]:
        options = self._options
        tail = find_log_tail(log.segments[-1], check_crcs=options.check_crcs)
        readable_end = tail.end_offset
        if options.respect_high_watermark and log.high_watermark is not None:
            readable_end = min(readable_end, log.high_watermark)
        transactions = TransactionBounds(readable_end, ())
        if options.read_committed and options.view is View.RECORDS:
            transactions = find_transaction_bounds(log, readable_end)
        latest = transactions.last_stable_offset
        start = _resolved(log, options.start, log.log_start_offset, latest)
        end = min(_resolved(log, options.end, latest, latest), latest)
        pieces = self._pieces(log, tail, max(start, log.log_start_offset), end)
        yield from self._grouped(log, pieces, end, transactions)

    def _grouped(
        self,
        log: PartitionLog,
        pieces: Iterator[_Piece],
        end_offset: int,
        transactions: TransactionBounds,
    ) -> Iterator[SegmentSplit]:
        group: list[_Piece] = []
        size = 0
        for piece in pieces:
            if group and size + piece.size > self._options.split_bytes:
                yield _split(log, group, piece.start_offset, transactions)
                group = []
                size = 0
            group.append(piece)
            size += piece.size
        if group:
            yield _split(log, group, end_offset, transactions)

    def _pieces(self, log: PartitionLog, tail: LogTail, start: int, end: int) -> Iterator[_Piece]:
        for number, segment in enumerate(log.segments):
            following = log.end_of(number)
            if segment.base_offset >= end or (following is not None and following <= start):
                continue
            end_position = segment.size
            # Whoever looks at batches wants to see what is left of a torn one.
            sees_torn = self._options.view is View.BATCHES and end == tail.end_offset
            if following is None and not sees_torn:
                end_position = tail.end_position
            with opened(segment) as records:
                yield from self._cut(records, SegmentRange(segment, 0, end_position), start, end)

    def _cut(
        self, records: FileRecords, whole: SegmentRange, start: int, end: int
    ) -> Iterator[_Piece]:
        segment = whole.segment
        position = _start_position(records, segment, start)
        piece_start = max(start, segment.base_offset)
        end_position = whole.end_position
        entries = None
        while end_position - position > self._options.split_bytes:
            if entries is None:
                entries = offset_entries(segment)
            boundary = next_boundary(records, entries, position + self._options.split_bytes)
            if boundary is None or boundary.position >= end_position:
                break
            if boundary.base_offset >= end:
                end_position = boundary.position
                break
            if boundary.base_offset > start:
                cut = SegmentRange(segment, position, boundary.position)
                yield _Piece(cut, piece_start)
                piece_start = boundary.base_offset
            position = boundary.position
        if end_position > position:
            yield _Piece(SegmentRange(segment, position, end_position), piece_start)


def _resolved(log: PartitionLog, bound: OffsetBound, default: int, latest: int) -> int:
    if bound.timestamp_ms is not None:
        found = first_offset_since(log, bound.timestamp_ms)
        return latest if found is None else found
    return bound.offsets.get(log.topic_partition, default)


def _start_position(records: FileRecords, segment: SegmentFile, start: int) -> int:
    if start <= segment.base_offset:
        return 0
    position = floor_position(segment, start)
    return position if batch_at(records, position) is not None else 0


def _split(
    log: PartitionLog, group: list[_Piece], end_offset: int, transactions: TransactionBounds
) -> SegmentSplit:
    start_offset = group[0].start_offset
    return SegmentSplit(
        log.topic_partition,
        tuple(piece.range for piece in group),
        start_offset,
        end_offset,
        transactions.aborted_within(start_offset, end_offset),
    )
