"""The offset that a time stands for."""

from __future__ import annotations

from bisect import bisect_left

from kafkapy.common.errors import ApiError
from kafkapy.common.record.file_channel_record_batch import FileChannelRecordBatch
from kafkapy.pipeline.segments.segment_files import PartitionLog, SegmentFile
from kafkapy.pipeline.segments.segment_index import time_entries
from kafkapy.pipeline.segments.segment_scan import floor_position, opened, readable_batches


def first_offset_since(log: PartitionLog, timestamp_ms: int) -> int | None:
    """The offset of the first record that is not older; None if all are.

    As for a broker, what is before the start of the log is no longer there.
    """
    for number, segment in enumerate(log.segments):
        following = log.end_of(number)
        if following is not None and following <= log.log_start_offset:
            continue
        found = _first_in(segment, timestamp_ms, log.log_start_offset)
        if found is not None:
            return found
    return None


def _first_in(segment: SegmentFile, timestamp_ms: int, start_offset: int) -> int | None:
    entries = time_entries(segment)
    # All that it says is older is, but it may lack the youngest: it is not written at once.
    older = bisect_left(entries, timestamp_ms, key=lambda entry: entry.timestamp)
    position = floor_position(segment, entries[older - 1].offset) if older else 0
    with opened(segment) as records:
        for batch in readable_batches(records, segment, position):
            if batch.max_timestamp >= timestamp_ms and batch.last_offset >= start_offset:
                found = _first_of(batch, timestamp_ms, start_offset)
                if found is not None:
                    return found
    return None


def _first_of(batch: FileChannelRecordBatch, timestamp_ms: int, start_offset: int) -> int | None:
    try:
        for record in batch.records():
            if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                return record.offset
    except ApiError:
        # Reading comes across it, and says so.
        return batch.last_offset
    return None
