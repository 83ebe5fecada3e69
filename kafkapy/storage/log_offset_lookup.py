"""Which offset belongs to a timestamp."""

from kafkapy.common.record.file_records import TimestampAndOffset
from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.storage.leader_epoch_file_cache import LeaderEpochFileCache
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments

# Timestamps of ListOffsets that stand for something else.
LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5


def fetch_offset_by_timestamp(
    target_timestamp: int,
    segments: LogSegments,
    leader_epoch_cache: LeaderEpochFileCache,
    *,
    log_start_offset: int,
    log_end_offset: int,
) -> TimestampAndOffset | None:
    """The first record that is not older than a timestamp, or what a special one stands for.

    Ports: kafka.log.UnifiedLog.fetchOffsetByTimestamp
    """
    if target_timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        earliest = leader_epoch_cache.earliest_entry
        # Records older than the first known epoch carry none.
        epoch = (
            earliest.epoch
            if earliest is not None and earliest.start_offset <= log_start_offset
            else None
        )
        return TimestampAndOffset(NO_TIMESTAMP, log_start_offset, epoch)
    if target_timestamp == LATEST_TIMESTAMP:
        return TimestampAndOffset(NO_TIMESTAMP, log_end_offset, leader_epoch_cache.latest_epoch)
    if target_timestamp == LATEST_TIERED_TIMESTAMP:
        # Without tiered storage nothing is tiered.
        return TimestampAndOffset(NO_TIMESTAMP, -1, -1)
    if target_timestamp == MAX_TIMESTAMP:
        return _offset_of_max_timestamp(segments.values())
    for segment in segments.values():
        if segment.largest_timestamp >= target_timestamp:
            found = segment.find_offset_by_timestamp(target_timestamp, log_start_offset)
            # The segment may lie below the log start offset and wait for its deletion.
            if found is not None:
                return found
    return None


def _offset_of_max_timestamp(segments: tuple[LogSegment, ...]) -> TimestampAndOffset | None:
    latest = max(segments, key=lambda segment: segment.max_timestamp_so_far)
    timestamp, shallow_offset = latest.max_timestamp_and_offset_so_far
    position = latest.offset_index.lookup(shallow_offset).position
    for batch in latest.log.batches(position):
        if batch.max_timestamp == timestamp:
            for record in batch.records():
                if record.timestamp == timestamp:
                    epoch = batch.leader_epoch if batch.leader_epoch >= 0 else None
                    return TimestampAndOffset(timestamp, record.offset, epoch)
    return None


def legacy_fetch_offsets_before(
    timestamp: int,
    max_num_offsets: int,
    segments: tuple[LogSegment, ...],
    *,
    log_start_offset: int,
    log_end_offset: int,
    now_ms: int,
) -> list[int]:
    """Segment starts that were written before a time, latest first: ListOffsets v0.

    Ports: kafka.log.UnifiedLog.legacyFetchOffsetsBefore
    """
    starts = [
        (max(segment.base_offset, log_start_offset), segment.last_modified_ms)
        for segment in segments
    ]
    if segments[-1].size:
        starts.append((log_end_offset, now_ms))
    if timestamp == EARLIEST_TIMESTAMP:
        starts = starts[:1]
    elif timestamp != LATEST_TIMESTAMP:
        while starts and starts[-1][1] > timestamp:
            starts.pop()
    offsets = [offset for offset, _ in reversed(starts)][:max_num_offsets]
    return sorted(offsets, reverse=True)
