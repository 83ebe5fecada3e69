"""A log that may be worth compacting."""

from dataclasses import dataclass

from kafkapy.common.types import TopicPartition
from kafkapy.storage.unified_log import UnifiedLog


@dataclass(frozen=True, slots=True)
class LogToClean:
    """A log with its compacted part, its dirty part and what cannot be compacted yet.

    Ports: kafka.log.LogToClean
    """

    log: UnifiedLog
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    needs_compaction_now: bool = False

    @classmethod
    def measure(
        cls,
        log: UnifiedLog,
        first_dirty_offset: int,
        uncleanable_offset: int,
        *,
        needs_compaction_now: bool = False,
    ) -> "LogToClean":
        """Only whole segments are compacted: the one with `uncleanable_offset` is not."""
        first_uncleanable, cleanable_bytes = calculate_cleanable_bytes(
            log, first_dirty_offset, uncleanable_offset
        )
        return cls(
            log,
            first_dirty_offset,
            first_uncleanable,
            sum(segment.size for segment in log.segments_between(-1, first_dirty_offset)),
            cleanable_bytes,
            needs_compaction_now,
        )

    @property
    def topic_partition(self) -> TopicPartition:
        return self.log.topic_partition

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0


def calculate_cleanable_bytes(
    log: UnifiedLog, first_dirty_offset: int, uncleanable_offset: int
) -> tuple[int, int]:
    """The base offset of the first segment that must stay, and the dirty bytes before it.

    Ports: kafka.log.LogCleanerManager.calculateCleanableBytes
    """
    active = log.active_segment
    candidates = log.non_active_segments_from(uncleanable_offset)
    first_uncleanable = (candidates[0] if candidates else active).base_offset
    dirty = log.segments_between(min(first_dirty_offset, first_uncleanable), first_uncleanable)
    return first_uncleanable, sum(segment.size for segment in dirty)
