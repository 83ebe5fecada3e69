"""Finding offsets of a partition by time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.common.errors import OffsetNotAvailableError
from kafkapy.common.record.file_records import TimestampAndOffset
from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.unified_log import UnifiedLog

if TYPE_CHECKING:
    from kafkapy.replication.partition import Partition

# ListOffsets: the time stands for an end of the log.
LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
EARLIEST_LOCAL_TIMESTAMP = -4


class PartitionOffsetLookup:
    """Answers ListOffsets for one partition. Thread-safe: reads under the partition's lock.

    Ports: kafka.cluster.Partition (fetchOffsetForTimestamp, legacyFetchOffsetsForTimestamp)
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def fetch_offset_for_timestamp(
        self,
        timestamp: int,
        *,
        isolation: FetchIsolation | None,
        current_leader_epoch: int | None,
        fetch_only_from_leader: bool,
    ) -> TimestampAndOffset | None:
        """The first record not older than `timestamp`, as far as the asker may see.

        `isolation` is None for another broker, which may see all. After an election the high
        watermark may still lag behind what was committed: then OFFSET_NOT_AVAILABLE is raised
        rather than telling a client that the log ends there.
        """
        partition = self._partition
        with partition.leader_isr_update_lock.read():
            log = partition.local_log_with_epoch_or_raise(
                current_leader_epoch, require_leader=fetch_only_from_leader
            )
            match isolation:
                case FetchIsolation.TXN_COMMITTED:
                    last_fetchable_offset = log.last_stable_offset
                case FetchIsolation.HIGH_WATERMARK:
                    last_fetchable_offset = log.high_watermark
                case _:
                    last_fetchable_offset = log.log_end_offset
            if timestamp == LATEST_TIMESTAMP:
                self._check_high_watermark_not_lagging(log, isolation)
                return TimestampAndOffset(
                    NO_TIMESTAMP, last_fetchable_offset, partition.leader_epoch
                )
            found = log.fetch_offset_by_timestamp(timestamp)
            if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
                return found
            if found is not None and found.offset < last_fetchable_offset:
                return found
            self._check_high_watermark_not_lagging(log, isolation)
            return None

    def _check_high_watermark_not_lagging(
        self, log: UnifiedLog, isolation: FetchIsolation | None
    ) -> None:
        epoch_start = self._partition.leader_epoch_start_offset
        if isolation is not None and epoch_start is not None and epoch_start > log.high_watermark:
            raise OffsetNotAvailableError(
                f"{self._partition.topic_partition}: the high watermark {log.high_watermark} has "
                f"not reached the start {epoch_start} of epoch {self._partition.leader_epoch} yet"
            )

    def legacy_fetch_offsets_for_timestamp(
        self,
        timestamp: int,
        max_num_offsets: int,
        *,
        is_from_consumer: bool,
        fetch_only_from_leader: bool,
    ) -> list[int]:
        """ListOffsets v0: base offsets of segments, newest first, up to the high watermark."""
        partition = self._partition
        with partition.leader_isr_update_lock.read():
            log = partition.local_log_with_epoch_or_raise(
                None, require_leader=fetch_only_from_leader
            )
            offsets = list(log.legacy_fetch_offsets_before(timestamp, max_num_offsets))
            high_watermark = log.high_watermark
        if is_from_consumer and any(offset > high_watermark for offset in offsets):
            return [high_watermark, *(offset for offset in offsets if offset <= high_watermark)]
        return offsets
