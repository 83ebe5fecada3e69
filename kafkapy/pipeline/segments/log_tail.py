"""Where a log ends: a crash, or a copy made beside a live broker, can cut it anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafkapy.common.errors import ApiError
from kafkapy.common.record.file_channel_record_batch import FileChannelRecordBatch
from kafkapy.common.record.file_records import FileRecords
from kafkapy.pipeline.segments.segment_files import SegmentFile
from kafkapy.pipeline.segments.segment_index import offset_entries
from kafkapy.pipeline.segments.segment_scan import SegmentScan, batch_at, opened

NO_END: Final = 2**63 - 1
_PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogTail:
    """The end of the last segment's sound batches.

    Where something follows them that no torn write explains, it is not left out: the end is then
    the file's, and the offset is NO_END.
    """

    end_offset: int
    end_position: int


def find_log_tail(segment: SegmentFile, *, check_crcs: bool) -> LogTail:
    """Looks at the batches behind the last index entry: they are few.

    A torn write leaves part of a batch, or a whole batch with parts missing, or zeros.
    """
    with opened(segment) as records:
        scan = SegmentScan(records, _last_indexed(segment, records))
        end_offset = segment.base_offset
        end_position = scan.position
        damaged = 0
        for batch in scan:
            if check_crcs and not _is_valid(batch):
                damaged += 1
                continue
            end_offset = batch.next_offset
            end_position = scan.position
            damaged = 0
        torn = damaged <= 1 and (scan.error is None or _is_zero(records, scan.position))
    return LogTail(end_offset, end_position) if torn else LogTail(NO_END, segment.size)


def _last_indexed(segment: SegmentFile, records: FileRecords) -> int:
    for entry in reversed(offset_entries(segment)[-2:]):
        if batch_at(records, entry.position) is not None:
            return entry.position
    return 0


def _is_valid(batch: FileChannelRecordBatch) -> bool:
    try:
        return batch.is_valid
    except ApiError:
        return False


def _is_zero(records: FileRecords, position: int) -> bool:
    while piece := records.read(position, min(_PIECE_BYTES, records.size_in_bytes - position)):
        if any(piece):
            return False
        position += len(piece)
    return True
