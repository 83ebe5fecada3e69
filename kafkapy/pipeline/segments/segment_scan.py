"""Going through the batches of a segment file by their headers."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final

from kafkapy.common.errors import ApiError
from kafkapy.common.record.file_channel_record_batch import FileChannelRecordBatch
from kafkapy.common.record.file_records import FileRecords
from kafkapy.pipeline.pipeline_errors import DataLossError
from kafkapy.pipeline.segments.segment_files import SegmentFile
from kafkapy.pipeline.segments.segment_index import offset_entries
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.offset_index import OffsetPosition

_MOST_TRIED: Final = 64  # an index that is wrong so often is of no use


@contextmanager
def opened(segment: SegmentFile) -> Iterator[FileRecords]:
    """The file as far as it went when it was found; DataLossError if that is no longer there."""
    try:
        channel = OsFileSystem().open(segment.path, read_only=True)
    except FileNotFoundError as error:
        raise DataLossError(f"{segment.path} has been deleted since it was found") from error
    with closing(channel):
        if os.fstat(channel.fileno()).st_ino != segment.inode:
            raise DataLossError(f"{segment.path} has been replaced since it was found")
        yield FileRecords(channel, 0, segment.size)


class SegmentScan:
    """The batches of an open segment from a position on; not thread-safe.

    Iteration stops before whatever is not a whole batch. `position` is then where that is, and
    `error` says why it is none, unless the file just ends there.
    """

    def __init__(self, records: FileRecords, position: int = 0) -> None:
        self._records = records
        self.position = position
        self.error: str | None = None

    def __iter__(self) -> Iterator[FileChannelRecordBatch]:
        try:
            for batch in self._records.batches(self.position):
                self.position = batch.position + batch.size_in_bytes
                yield batch
        except ApiError as error:
            self.error = str(error)


def floor_position(segment: SegmentFile, offset: int) -> int:
    """A position at or before the batch that holds an offset, as near as the index knows."""
    entries = offset_entries(segment)
    found = bisect_right(entries, offset, key=lambda entry: entry.offset) - 1
    return entries[found].position if found >= 0 else 0


def batch_at(records: FileRecords, position: int) -> FileChannelRecordBatch | None:
    """The sound batch at a position; None if there is none, or if its first offset is hidden.

    The bytes at a wrong position can look like a header, but then the checksum is wrong.
    """
    try:
        batch = next(records.batches(position), None)
        if batch is None or (batch.magic < 2 and batch.is_compressed) or not batch.is_valid:
            return None
        return batch
    except ApiError:
        return None


def next_boundary(
    records: FileRecords, entries: list[OffsetPosition], position: int
) -> FileChannelRecordBatch | None:
    """The first sound batch that the index knows at or after a position."""
    first = bisect_right(entries, position - 1, key=lambda entry: entry.position)
    for entry in entries[first : first + _MOST_TRIED]:
        batch = batch_at(records, entry.position)
        if batch is not None:
            return batch
    return None


def readable_batches(
    records: FileRecords, segment: SegmentFile, position: int
) -> Iterator[FileChannelRecordBatch]:
    """All batches from a position on that can be found, what lies between them passed over."""
    while True:
        scan = SegmentScan(records, position)
        yield from scan
        if scan.error is None:
            return
        following = next_boundary(records, offset_entries(segment), scan.position + 1)
        if following is None:
            return
        position = following.position
