"""Which segments of a log are old enough to go."""

from collections.abc import Callable

from kafkapy.storage.log_segment import LogSegment

# Given a segment and the one after it: may the segment go?
ShouldDelete = Callable[[LogSegment, LogSegment | None], bool]


def deletable_segments(
    segments: tuple[LogSegment, ...],
    should_delete: ShouldDelete,
    *,
    high_watermark: int,
    log_end_offset: int,
) -> list[LogSegment]:
    """The oldest segments for which a rule holds, up to the first for which it does not.

    What is not below the high watermark stays, so that the log start offset never passes it. An
    empty active segment stays too: deleting it would only make another.

    Ports: kafka.log.UnifiedLog.deletableSegments
    """
    deletable = []
    for segment, following in zip(segments, (*segments[1:], None), strict=True):
        upper_bound = log_end_offset if following is None else following.base_offset
        if (
            (following is None and segment.size == 0)
            or high_watermark < upper_bound
            or not should_delete(segment, following)
        ):
            break
        deletable.append(segment)
    return deletable


def older_than(retention_ms: int, now_ms: int) -> ShouldDelete:
    """retention.ms, by the greatest timestamp of each segment."""
    return lambda segment, _: now_ms - segment.largest_timestamp > retention_ms


def beyond_size(retention_bytes: int, size: int) -> ShouldDelete:
    """retention.bytes: as many segments as can go without falling below it."""
    excess = size - retention_bytes

    def should_delete(segment: LogSegment, following: LogSegment | None) -> bool:
        nonlocal excess
        if excess < segment.size:
            return False
        excess -= segment.size
        return True

    return should_delete


def before_log_start(log_start_offset: int) -> ShouldDelete:
    """Nothing in the segment can be read any more."""
    return lambda _, following: following is not None and following.base_offset <= log_start_offset
