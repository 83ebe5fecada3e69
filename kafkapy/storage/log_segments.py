"""The segments of one log."""

import threading

from sortedcontainers import SortedDict

from kafkapy.common.types import TopicPartition
from kafkapy.storage.log_segment import LogSegment


class LogSegments:
    """Segments ordered by base offset. Thread-safe.

    Ports: org.apache.kafka.storage.internals.log.LogSegments
    """

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition  # constant after construction
        self._lock = threading.Lock()
        self._segments: SortedDict[int, LogSegment] = SortedDict()  # guarded by self._lock
        # The last segment, kept apart so that appends need no lock. Written under self._lock.
        self._last: LogSegment | None = None

    @property
    def is_empty(self) -> bool:
        return self._last is None

    @property
    def last_segment(self) -> LogSegment | None:
        return self._last

    @property
    def active_segment(self) -> LogSegment:
        """The one that is appended to."""
        if self._last is None:
            raise LookupError(f"{self.topic_partition} has no segment")
        return self._last

    @property
    def first_segment(self) -> LogSegment | None:
        with self._lock:
            return self._segments.peekitem(0)[1] if self._segments else None

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self.values())

    def __len__(self) -> int:
        return len(self._segments)

    def __contains__(self, base_offset: int) -> bool:
        with self._lock:
            return base_offset in self._segments

    def get(self, base_offset: int) -> LogSegment | None:
        with self._lock:
            return self._segments.get(base_offset)

    def add(self, segment: LogSegment) -> None:
        with self._lock:
            self._segments[segment.base_offset] = segment
            self._last = self._segments.peekitem(-1)[1]

    def remove(self, base_offset: int) -> None:
        with self._lock:
            self._segments.pop(base_offset, None)
            self._last = self._segments.peekitem(-1)[1] if self._segments else None

    def clear(self) -> None:
        with self._lock:
            self._segments.clear()
            self._last = None

    def base_offsets(self) -> tuple[int, ...]:
        with self._lock:
            return tuple(self._segments)

    def values(self) -> tuple[LogSegment, ...]:
        with self._lock:
            return tuple(self._segments.values())

    def values_between(self, start: int, end: int | None = None) -> tuple[LogSegment, ...]:
        """From the segment that holds `start` to the last one that begins before `end`."""
        with self._lock:
            if start == end:
                return ()
            if end is not None and start > end:
                raise ValueError(f"{self.topic_partition}: no range from {start} to {end}")
            first = max(self._segments.bisect_right(start) - 1, 0)
            last = len(self._segments) if end is None else self._segments.bisect_left(end)
            return tuple(self._segments.values()[first:last])

    def floor_segment(self, offset: int) -> LogSegment | None:
        """The segment with the greatest base offset <= offset."""
        last = self._last
        if last is not None and last.base_offset <= offset:
            return last
        with self._lock:
            index = self._segments.bisect_right(offset) - 1
            return self._segments.peekitem(index)[1] if index >= 0 else None

    def lower_segment(self, offset: int) -> LogSegment | None:
        """The segment with the greatest base offset < offset."""
        with self._lock:
            index = self._segments.bisect_left(offset) - 1
            return self._segments.peekitem(index)[1] if index >= 0 else None

    def higher_segment(self, offset: int) -> LogSegment | None:
        """The segment with the smallest base offset > offset."""
        with self._lock:
            index = self._segments.bisect_right(offset)
            return self._segments.peekitem(index)[1] if index < len(self._segments) else None

    def update_parent_dir(self, directory: str) -> None:
        for segment in self.values():
            segment.update_parent_dir(directory)

    def close(self) -> None:
        for segment in self.values():
            segment.close()

    def close_handlers(self) -> None:
        for segment in self.values():
            segment.close_handlers()
