"""The log of one partition."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

from kafkapy.common.errors import (
    InconsistentTopicIdError,
    KafkaStorageError,
    OffsetOutOfRangeError,
    RecordBatchTooLargeError,
)
from kafkapy.common.record.file_records import TimestampAndOffset
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record_batch import MAGIC_VALUE_V2
from kafkapy.storage import log_offset_lookup, log_retention
from kafkapy.storage.append_analysis import analyze_and_validate_records
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.fetch_data_info import FetchDataInfo
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.leader_epoch_file_cache import (
    UNDEFINED_EPOCH_OFFSET,
    LeaderEpochFileCache,
    open_leader_epoch_cache,
)
from kafkapy.storage.local_log import LocalLog
from kafkapy.storage.log_append_info import LogAppendInfo
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_file_utils import FUTURE_DIR_SUFFIX
from kafkapy.storage.log_metrics import register_log_gauges, remove_log_gauges
from kafkapy.storage.log_offset_bounds import LogOffsetBounds, LogOffsetSnapshot
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.partition_metadata_file import PartitionMetadataFile
from kafkapy.storage.producer_state_entry import LastRecord, ProducerStateEntry
from kafkapy.storage.producer_state_loading import ProducerChanges, rebuild_producer_state
from kafkapy.storage.producer_state_manager import ProducerStateManager
from kafkapy.storage.record_assigner import RecordAssigner
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.storage.storage_errors import UnexpectedAppendOffsetError
from kafkapy.storage.transaction_index import AbortedTxn
from kafkapy.storage.verification_state_entry import VerificationGuard

logger = logging.getLogger(__name__)

# The furthest an offset may be from its segment's base.
_MAX_RELATIVE_OFFSET = (1 << 31) - 1


class OffsetAndEpoch(NamedTuple):
    """Ports: org.apache.kafka.server.common.OffsetAndEpoch"""

    offset: int
    leader_epoch: int


class UnifiedLog:
    """A partition's records with their offsets, bounds, producers and leader epochs. Thread-safe.

    Appends, truncation and everything else that changes the log take its lock; reads do not. An
    I/O error anywhere takes the log directory offline and is raised as KafkaStorageError.

    Ports: kafka.log.UnifiedLog
    """

    def __init__(
        self,
        local_log: LocalLog,
        *,
        log_start_offset: int,
        leader_epoch_cache: LeaderEpochFileCache,
        producer_state_manager: ProducerStateManager,
        topic_id: UUID | None,
        environment: StorageEnvironment,
        producer_id_expiration_check_interval_ms: int,
    ) -> None:
        # constant after construction
        self.topic_partition = local_log.topic_partition
        self._local_log = local_log
        self._environment = environment
        self._time = environment.time
        self._stats = environment.broker_topic_stats
        self.producer_state_manager = producer_state_manager
        self._lock = threading.RLock()
        self._bounds = LogOffsetBounds(
            local_log, producer_state_manager, self._lock, log_start_offset
        )
        # written under self._lock, read by anyone
        self.leader_epoch_cache = leader_epoch_cache
        self.topic_id: UUID | None = None
        self._is_retired = False
        self._partition_metadata_file = self._open_partition_metadata_file()
        self._assigner = self._make_assigner()
        self._bounds.update_high_watermark_with_log_end_offset()
        self._bounds.update_first_unstable_offset()
        self._settle_topic_id(topic_id)
        self._producer_expire_check = environment.scheduler.schedule(
            "PeriodicProducerExpirationCheck",
            self.remove_expired_producers,
            delay_ms=producer_id_expiration_check_interval_ms,
            period_ms=producer_id_expiration_check_interval_ms,
        )

    # --- where it is and how it is set up

    @property
    def dir(self) -> str:
        return self._local_log.dir

    @property
    def parent_dir(self) -> str:
        """The log directory (log.dirs) it is in."""
        return self._local_log.parent_dir

    @property
    def is_future(self) -> bool:
        """A copy that is being moved to another log directory."""
        return self._local_log.dir.endswith(FUTURE_DIR_SUFFIX)

    @property
    def config(self) -> LogConfig:
        return self._local_log.config

    def update_config(self, config: LogConfig) -> None:
        with self._lock:
            self._local_log.config = config
            self._assigner = self._make_assigner()

    def assign_topic_id(self, topic_id: UUID) -> None:
        """Raises InconsistentTopicIdError if the log belongs to another topic of that name."""
        with self._lock:
            if self.topic_id is None:
                self._settle_topic_id(topic_id)
            elif self.topic_id != topic_id:
                raise InconsistentTopicIdError(
                    f"{self.topic_partition} has the topic id {self.topic_id}, not {topic_id}"
                )

    # --- bounds

    @property
    def log_start_offset(self) -> int:
        return self._bounds.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._local_log.log_end_offset_metadata.message_offset

    @property
    def log_end_offset_metadata(self) -> LogOffsetMetadata:
        return self._local_log.log_end_offset_metadata

    @property
    def high_watermark(self) -> int:
        return self._bounds.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Below it there is no open transaction."""
        return self._bounds.last_stable_offset

    @property
    def last_stable_offset_lag(self) -> int:
        return self.high_watermark - self.last_stable_offset

    @property
    def recovery_point(self) -> int:
        """Everything below it is on disk."""
        return self._local_log.recovery_point

    @property
    def last_flush_ms(self) -> int:
        return self._local_log.last_flush_ms

    @property
    def size(self) -> int:
        return self._local_log.segments.size_in_bytes

    @property
    def number_of_segments(self) -> int:
        return len(self._local_log.segments)

    @property
    def segments(self) -> tuple[LogSegment, ...]:
        return self._local_log.segments.values()

    @property
    def active_segment(self) -> LogSegment:
        return self._local_log.segments.active_segment

    def segments_between(self, start: int, end: int) -> tuple[LogSegment, ...]:
        """From the one that holds `start` to the last that begins before `end`."""
        return self._local_log.segments.values_between(start, end)

    def non_active_segments_from(self, offset: int) -> tuple[LogSegment, ...]:
        active_base = self.active_segment.base_offset
        return () if offset > active_base else self.segments_between(offset, active_base)

    @property
    def latest_epoch(self) -> int | None:
        return self.leader_epoch_cache.latest_epoch

    def fetch_offset_snapshot(self) -> LogOffsetSnapshot:
        try:
            return self._bounds.snapshot()
        except OSError as e:
            raise self._io_failure("reading", e) from e

    def fetch_high_watermark_metadata(self) -> LogOffsetMetadata:
        """With its place on disk, looked up if need be."""
        try:
            return self._bounds.fetch_high_watermark_metadata()
        except OSError as e:
            raise self._io_failure("reading", e) from e

    def fetch_last_stable_offset_metadata(self) -> LogOffsetMetadata:
        try:
            return self._bounds.fetch_last_stable_offset_metadata()
        except OSError as e:
            raise self._io_failure("reading", e) from e

    def update_high_watermark(self, high_watermark: int | LogOffsetMetadata) -> int:
        """Sets it, within the log's bounds; returns what it is then. May go back."""
        if not isinstance(high_watermark, LogOffsetMetadata):
            high_watermark = LogOffsetMetadata(high_watermark)
        return self._bounds.update_high_watermark(high_watermark)

    def maybe_update_high_watermark(self, high_watermark: int) -> int | None:
        """A follower's: the new value if it changed."""
        with self._lock:
            old = self.high_watermark
            updated = self.update_high_watermark(high_watermark)
            return updated if updated != old else None

    def maybe_increment_high_watermark(self, new: LogOffsetMetadata) -> LogOffsetMetadata | None:
        """A leader's: never goes back. The old value if it moved on, or onto a newer segment."""
        return self._bounds.maybe_increment_high_watermark(new)

    def maybe_increment_log_start_offset(self, new_log_start_offset: int, reason: str) -> bool:
        """Hides records before an offset; their segments go with the next retention check.

        Raises OffsetOutOfRangeError beyond the high watermark.
        """
        with self._lock, self._io_errors("raising the log start offset of"):
            if new_log_start_offset > self.high_watermark:
                raise OffsetOutOfRangeError(
                    f"{self.topic_partition} cannot start at {new_log_start_offset}: the high "
                    f"watermark is {self.high_watermark}"
                )
            if new_log_start_offset <= self.log_start_offset:
                return False
            logger.info(
                "%s: the log start offset goes up to %d for %s",
                self.topic_partition,
                new_log_start_offset,
                reason,
            )
            self._bounds.log_start_offset = new_log_start_offset
            if self._local_log.recovery_point < new_log_start_offset:
                self._local_log.recovery_point = new_log_start_offset
            self.leader_epoch_cache.truncate_from_start_async_flush(new_log_start_offset)
            self.producer_state_manager.on_log_start_offset_incremented(new_log_start_offset)
            self._bounds.update_first_unstable_offset()
            return True

    # --- appending

    def append_as_leader(
        self,
        records: MemoryRecords,
        leader_epoch: int,
        *,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verification_guard: VerificationGuard = VerificationGuard.SENTINEL,
    ) -> LogAppendInfo:
        """Validates records, gives them offsets and timestamps and appends them.

        Records that a producer sends again are not appended; the answer is then that of the first
        time. Their buffer may be changed in place.
        """
        return self._append(
            records,
            origin,
            leader_epoch=leader_epoch,
            assign_offsets=True,
            verification_guard=verification_guard,
        )

    def append_as_follower(self, records: MemoryRecords) -> LogAppendInfo:
        """Appends records as the leader wrote them.

        Raises UnexpectedAppendOffsetError if they begin before the log end.
        """
        return self._append(
            records, AppendOrigin.REPLICATION, leader_epoch=-1, assign_offsets=False
        )

    def _append(
        self,
        records: MemoryRecords,
        origin: AppendOrigin,
        *,
        leader_epoch: int,
        assign_offsets: bool,
        verification_guard: VerificationGuard = VerificationGuard.SENTINEL,
    ) -> LogAppendInfo:
        local_log = self._local_log
        # The directory must say which topic it belongs to before it holds any of its records.
        self._partition_metadata_file.maybe_flush()
        info = analyze_and_validate_records(
            records,
            self.topic_partition,
            origin=origin,
            max_message_bytes=local_log.config.max_message_bytes if assign_offsets else None,
            require_offsets_monotonic=not assign_offsets,
            log_start_offset=self.log_start_offset,
            stats=self._stats,
        )
        if info.valid_bytes <= 0:
            return info
        if info.valid_bytes < records.size_in_bytes:
            # A fetch response may end with a part of a batch.
            records = MemoryRecords(records.buffer[: info.valid_bytes])
        with self._lock:
            self._environment.ensure_online(local_log.parent_dir)
            try:
                if assign_offsets:
                    records = self._assigner.assign(
                        records,
                        info,
                        first_offset=local_log.log_end_offset,
                        leader_epoch=leader_epoch,
                        origin=origin,
                    )
                elif info.first_or_last_offset_of_first_batch < local_log.log_end_offset:
                    raise self._unexpected_append_offset(records, info)
                self._append_locked(records, info, origin, verification_guard)
            except OSError as e:
                raise self._io_failure("appending to", e) from e
            return info

    def _append_locked(
        self,
        records: MemoryRecords,
        info: LogAppendInfo,
        origin: AppendOrigin,
        verification_guard: VerificationGuard,
    ) -> None:
        local_log = self._local_log
        has_producers = False
        for batch in records.batches():
            if batch.magic >= MAGIC_VALUE_V2:
                if batch.leader_epoch >= 0:
                    self.leader_epoch_cache.assign(batch.leader_epoch, batch.base_offset)
                has_producers = has_producers or batch.producer_id >= 0
            elif not self.leader_epoch_cache.is_empty:
                # Records without epochs: truncation must go by the high watermark again.
                self.leader_epoch_cache.clear_and_flush()
        size = records.size_in_bytes
        if size > local_log.config.segment_bytes:
            raise RecordBatchTooLargeError(
                f"Records of {size} bytes for {self.topic_partition} do not fit a segment "
                f"({local_log.config.segment_bytes} bytes)"
            )
        segment = self._maybe_roll_locked(size, info)
        manager = self.producer_state_manager
        changes: ProducerChanges | None = None
        if has_producers:
            changes = ProducerChanges()
            duplicate = changes.analyze(manager, records, origin, segment, verification_guard)
            if duplicate is not None:
                info.first_offset = duplicate.first_offset
                info.last_offset = duplicate.last_offset
                info.log_append_time = duplicate.timestamp
                info.log_start_offset = self.log_start_offset
                return
        local_log.append(
            info.last_offset,
            largest_timestamp=info.max_timestamp,
            shallow_offset_of_max_timestamp=info.shallow_offset_of_max_timestamp,
            records=records,
        )
        if changes is not None:
            changes.apply(manager, segment)
        # Also without idempotent producers, so that a snapshot says how far it reaches.
        manager.update_map_end_offset(info.last_offset + 1)
        self._bounds.on_append()
        if local_log.unflushed_messages >= local_log.config.flush_messages:
            self.flush()

    def _unexpected_append_offset(
        self, records: MemoryRecords, info: LogAppendInfo
    ) -> UnexpectedAppendOffsetError:
        first = records.batches()[0]
        return UnexpectedAppendOffsetError(
            f"Records for {self.topic_partition} begin at {first.base_offset}, before the log end "
            f"{self.log_end_offset}",
            first_offset=first.base_offset,
            last_offset=info.last_offset,
        )

    def maybe_assign_epoch_start_offset(self, leader_epoch: int, start_offset: int) -> None:
        self.leader_epoch_cache.assign(leader_epoch, start_offset)

    # --- reading

    def read(
        self,
        start_offset: int,
        max_length: int,
        isolation: FetchIsolation,
        *,
        min_one_message: bool,
    ) -> FetchDataInfo:
        """A slice of the segment file that holds `start_offset`, as far as `isolation` allows.

        With `min_one_message` the first batch is returned even if it is larger than `max_length`.
        Raises OffsetOutOfRangeError outside the log.
        """
        local_log = self._local_log
        self._environment.ensure_online(local_log.parent_dir)
        self._bounds.check_log_start_offset(start_offset)
        try:
            if isolation is FetchIsolation.LOG_END:
                max_offset_metadata = local_log.log_end_offset_metadata
            elif isolation is FetchIsolation.HIGH_WATERMARK:
                max_offset_metadata = self._bounds.fetch_high_watermark_metadata()
            else:
                max_offset_metadata = self._bounds.fetch_last_stable_offset_metadata()
            return local_log.read(
                start_offset,
                max_length,
                min_one_message=min_one_message,
                max_offset_metadata=max_offset_metadata,
                include_aborted_txns=isolation is FetchIsolation.TXN_COMMITTED,
            )
        except OSError as e:
            raise self._io_failure("reading", e) from e

    def convert_to_offset_metadata_or_raise(self, offset: int) -> LogOffsetMetadata:
        """Finds an offset's place on disk; raises OffsetOutOfRangeError."""
        with self._io_errors("reading"):
            return self._bounds.convert_to_offset_metadata_or_raise(offset)

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn]:
        return self._local_log.collect_aborted_transactions(start_offset, upper_bound_offset)

    def fetch_offset_by_timestamp(self, target_timestamp: int) -> TimestampAndOffset | None:
        """The first record that is not older; None if all are. ListOffsets' special timestamps
        stand for the start, the end and the youngest record."""
        with self._io_errors("searching by timestamp in"):
            return log_offset_lookup.fetch_offset_by_timestamp(
                target_timestamp,
                self._local_log.segments,
                self.leader_epoch_cache,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
            )

    def legacy_fetch_offsets_before(self, timestamp: int, max_num_offsets: int) -> list[int]:
        """Segment starts written before a time, latest first."""
        with self._io_errors("searching by timestamp in"):
            return log_offset_lookup.legacy_fetch_offsets_before(
                timestamp,
                max_num_offsets,
                self._local_log.segments.values(),
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                now_ms=self._time.milliseconds(),
            )

    def end_offset_for_epoch(self, leader_epoch: int) -> OffsetAndEpoch | None:
        """Where the last epoch at or below a given one ended; None if it is above all of ours."""
        epoch, offset = self.leader_epoch_cache.end_offset_for(leader_epoch, self.log_end_offset)
        return None if offset == UNDEFINED_EPOCH_OFFSET else OffsetAndEpoch(offset, epoch)

    # --- producers

    def active_producers(self) -> tuple[ProducerStateEntry, ...]:
        with self._lock:
            return tuple(self.producer_state_manager.active_producers.values())

    def last_records_of_active_producers(self) -> dict[int, LastRecord]:
        """By producer id."""
        with self._lock:
            return {
                producer_id: LastRecord(
                    entry.last_data_offset if entry.last_data_offset >= 0 else None,
                    entry.producer_epoch,
                )
                for producer_id, entry in self.producer_state_manager.active_producers.items()
            }

    def maybe_start_transaction_verification(
        self, producer_id: int, *, sequence: int, epoch: int
    ) -> VerificationGuard:
        with self._lock:
            return self.producer_state_manager.maybe_start_transaction_verification(
                producer_id, sequence=sequence, epoch=epoch, now_ms=self._time.milliseconds()
            )

    def remove_expired_producers(self) -> None:
        with self._lock:
            self.producer_state_manager.remove_expired_producers(self._time.milliseconds())

    # --- segments

    def roll(self, expected_next_offset: int = 0) -> LogSegment:
        """Closes the active segment and begins a new one."""
        with self._lock, self._io_errors("rolling"):
            return self._roll_locked(expected_next_offset)

    def _maybe_roll_locked(self, messages_size: int, info: LogAppendInfo) -> LogSegment:
        segment = self._local_log.segments.active_segment
        config = self._local_log.config
        if not segment.should_roll(
            max_segment_ms=config.max_segment_ms,
            max_segment_bytes=config.segment_bytes,
            messages_size=messages_size,
            max_timestamp=info.max_timestamp,
            max_offset=info.last_offset,
        ):
            return segment
        # With a v0/v1 batch from a leader only the last offset is known for sure; starting that
        # far back keeps it within reach of the new segment's indexes.
        first_offset = (
            info.first_offset
            if info.first_offset >= 0
            else info.last_offset_of_first_batch - _MAX_RELATIVE_OFFSET
        )
        return self._roll_locked(max(first_offset, 0))

    def _roll_locked(self, expected_next_offset: int) -> LogSegment:
        new_segment = self._local_log.roll(expected_next_offset)
        # A snapshot at every segment start, so that recovery can begin at any of them.
        manager = self.producer_state_manager
        manager.update_map_end_offset(new_segment.base_offset)
        snapshot = manager.take_snapshot(sync=False)
        self._bounds.update_high_watermark_with_log_end_offset()

        def flush_old_segment() -> None:
            with self._io_errors("flushing"):
                if snapshot is not None:
                    snapshot.flush()
            self.flush_upto_offset_exclusive(new_segment.base_offset)

        self._environment.scheduler.schedule_once("flush-log", flush_old_segment)
        return new_segment

    def delete_old_segments(self) -> int:
        """Applies retention; how many segments went."""
        config = self.config
        deleted = 0
        if config.delete:
            if config.retention_ms >= 0:
                deleted += self._delete_segments_where(
                    log_retention.older_than(config.retention_ms, self._time.milliseconds()),
                    f"retention.ms ({config.retention_ms})",
                )
            size = self.size
            if 0 <= config.retention_bytes < size:
                deleted += self._delete_segments_where(
                    log_retention.beyond_size(config.retention_bytes, size),
                    f"retention.bytes ({config.retention_bytes})",
                )
        return deleted + self._delete_segments_where(
            log_retention.before_log_start(self.log_start_offset),
            f"the log start offset ({self.log_start_offset})",
        )

    def _delete_segments_where(self, should_delete: log_retention.ShouldDelete, reason: str) -> int:
        with self._lock, self._io_errors("deleting segments of"):
            segments = self._local_log.segments
            deletable = log_retention.deletable_segments(
                segments.values(),
                should_delete,
                high_watermark=self.high_watermark,
                log_end_offset=self.log_end_offset,
            )
            if not deletable:
                return 0
            if len(deletable) == len(segments):
                # There must always be a segment to append to.
                self._roll_locked(0)
            following = segments.higher_segment(deletable[-1].base_offset)
            if following is not None:
                self.maybe_increment_log_start_offset(following.base_offset, "segment deletion")
            self._local_log.remove_and_delete_segments(deletable, reason)
            self._delete_producer_snapshots_locked(tuple(deletable))
            return len(deletable)

    def new_cleaned_segment(self, base_offset: int) -> LogSegment:
        """An empty one for the result of a compaction; no part of the log yet."""
        with self._io_errors("compacting"):
            return self._local_log.new_cleaned_segment(base_offset)

    def replace_segments(
        self, new_segments: tuple[LogSegment, ...], old_segments: tuple[LogSegment, ...]
    ) -> None:
        """Puts compacted segments in the place of those that they were made from."""
        with self._lock, self._io_errors("replacing segments of"):
            gone = self._local_log.replace_segments(new_segments, old_segments)
            self._delete_producer_snapshots_locked(gone)

    def truncate_to(self, target_offset: int) -> bool:
        """Removes records at and above an offset; whether there were any."""
        if target_offset < 0:
            raise ValueError(f"{self.topic_partition} cannot be truncated to {target_offset}")
        with self._lock, self._io_errors("truncating"):
            if target_offset >= self.log_end_offset:
                # The end of the epochs may still disagree with the new leader's.
                self.leader_epoch_cache.truncate_from_end_async_flush(self.log_end_offset)
                return False
            logger.info("%s: truncating to %d", self.topic_partition, target_offset)
            first = self._local_log.segments.first_segment
            if first is not None and first.base_offset > target_offset:
                self.truncate_fully_and_start_at(target_offset)
                return True
            doomed = self._local_log.truncate_to(target_offset)
            self._delete_producer_snapshots_locked(doomed)
            self.leader_epoch_cache.truncate_from_end_async_flush(target_offset)
            self._bounds.log_start_offset = min(target_offset, self.log_start_offset)
            self._rebuild_producer_state_locked(target_offset)
            if self.high_watermark >= self.log_end_offset:
                self.update_high_watermark(self._local_log.log_end_offset_metadata)
            return True

    def truncate_fully_and_start_at(
        self, new_offset: int, log_start_offset: int | None = None
    ) -> None:
        """Removes everything; the next record gets `new_offset`."""
        with self._lock, self._io_errors("truncating"):
            logger.info(
                "%s: truncating everything, to start at %d", self.topic_partition, new_offset
            )
            self._local_log.truncate_fully_and_start_at(new_offset)
            self.leader_epoch_cache.clear_and_flush()
            self.producer_state_manager.truncate_fully_and_start_at(new_offset)
            self._bounds.log_start_offset = (
                new_offset if log_start_offset is None else log_start_offset
            )
            self._rebuild_producer_state_locked(new_offset)
            self.update_high_watermark(self._local_log.log_end_offset_metadata)

    # --- to disk, and away

    def flush(self, *, force_active_segment: bool = False) -> None:
        """Forces all records to disk; with `force_active_segment` an empty active segment too."""
        self._flush(self.log_end_offset, including=force_active_segment)

    def flush_upto_offset_exclusive(self, offset: int) -> None:
        self._flush(offset, including=False)

    def _flush(self, offset: int, *, including: bool) -> None:
        if self._is_retired:
            return
        flush_offset = offset + 1 if including else offset
        with self._io_errors("flushing"):
            if flush_offset > self._local_log.recovery_point:
                # fsync without the lock: appends go on meanwhile.
                self._local_log.flush(flush_offset)
                with self._lock:
                    self._local_log.mark_flushed(offset)

    def take_producer_snapshot(self) -> None:
        with self._lock, self._io_errors("taking a producer snapshot of"):
            self.producer_state_manager.take_snapshot()

    def rename_dir(self, name: str, *, reinitialize: bool) -> None:
        """Gives its directory another name; with `reinitialize` the log stays in use."""
        with self._lock, self._io_errors("renaming the directory of"):
            self._partition_metadata_file.maybe_flush()
            if not reinitialize:
                self._is_retired = True
                self.leader_epoch_cache.retire()
            if not self._local_log.rename_dir(name):
                return
            self.producer_state_manager.update_parent_dir(self.dir)
            if reinitialize:
                self.leader_epoch_cache = open_leader_epoch_cache(
                    self.dir, self.topic_partition, self._environment
                )
                self._partition_metadata_file = self._open_partition_metadata_file()

    def close(self) -> None:
        """Leaves a producer snapshot, so that nothing has to be read at the next start."""
        with self._lock, self._io_errors("closing"):
            self._partition_metadata_file.maybe_flush()
            self._producer_expire_check.cancel()
            self.producer_state_manager.take_snapshot()
            self._local_log.close()

    def close_handlers(self) -> None:
        """Lets go of the files without writing: their directory has failed."""
        with self._lock:
            self._producer_expire_check.cancel()
            self._local_log.close_handlers()

    def delete(self) -> None:
        """Removes the log from disk at once."""
        with self._lock, self._io_errors("deleting"):
            self._producer_expire_check.cancel()
            self.leader_epoch_cache.clear()
            self._local_log.delete_all_segments()
            self._local_log.delete_dir()

    def register_metrics(self) -> None:
        register_log_gauges(
            self._environment.metrics,
            self.topic_partition,
            num_segments=lambda: self.number_of_segments,
            start_offset=lambda: self.log_start_offset,
            end_offset=lambda: self.log_end_offset,
            size=lambda: self.size,
        )

    def remove_metrics(self) -> None:
        remove_log_gauges(self._environment.metrics, self.topic_partition)

    def __repr__(self) -> str:
        return (
            f"UnifiedLog({self.dir}, start={self.log_start_offset}, "
            f"high_watermark={self.high_watermark}, end={self.log_end_offset})"
        )

    # --- with the lock held, or before the log is shared

    @contextmanager
    def _io_errors(self, doing: str) -> Iterator[None]:
        self._environment.ensure_online(self.parent_dir)
        try:
            yield
        except OSError as e:
            raise self._io_failure(doing, e) from e

    def _io_failure(self, doing: str, error: OSError) -> KafkaStorageError:
        if self._is_retired:
            # Its files go away under whoever still holds the log: nothing is wrong with the disk.
            return KafkaStorageError(f"{self.topic_partition} is being deleted")
        return self._environment.io_failure(
            self.parent_dir, f"{doing} {self.topic_partition}", error
        )

    def _make_assigner(self) -> RecordAssigner:
        return RecordAssigner(self.topic_partition, self.config, time=self._time, stats=self._stats)

    def _open_partition_metadata_file(self) -> PartitionMetadataFile:
        return PartitionMetadataFile(
            self.dir,
            file_system=self._environment.file_system,
            log_dir_failure_channel=self._environment.log_dir_failure_channel,
        )

    def _settle_topic_id(self, topic_id: UUID | None) -> None:
        self.topic_id = self._partition_metadata_file.settle(topic_id)
        if self._partition_metadata_file.is_dirty:
            self._environment.scheduler.schedule_once(
                "flush-metadata-file", self._partition_metadata_file.maybe_flush
            )

    def _rebuild_producer_state_locked(self, last_offset: int) -> None:
        rebuild_producer_state(
            self.producer_state_manager,
            self._local_log.segments,
            log_start_offset=self.log_start_offset,
            last_offset=last_offset,
            time=self._time,
            reload_from_clean_shutdown=False,
        )

    def _delete_producer_snapshots_locked(self, segments: tuple[LogSegment, ...]) -> None:
        manager = self.producer_state_manager
        marked = [
            manager.remove_and_mark_snapshot_for_deletion(segment.base_offset)
            for segment in segments
        ]
        self._environment.delete_later(
            [snapshot for snapshot in marked if snapshot is not None],
            "producer snapshots",
            self.parent_dir,
            self.config.file_delete_delay_ms,
        )
