"""Which log is to be compacted next, and who may touch it meanwhile."""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kafkapy.common.errors import KafkaError, KafkaStorageError
from kafkapy.common.metrics.stats import Gauge
from kafkapy.common.types import TopicPartition
from kafkapy.storage.cleaner_stats import PreCleanStats
from kafkapy.storage.log_cleaning_state import (
    LogCleaningAborted,
    LogCleaningInProgress,
    LogCleaningPaused,
    LogCleaningState,
)
from kafkapy.storage.log_file_utils import CLEANER_OFFSET_CHECKPOINT_FILE
from kafkapy.storage.log_to_clean import LogToClean, calculate_cleanable_bytes
from kafkapy.storage.offset_checkpoint_file import OffsetCheckpointFile
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.storage.storage_errors import LogCleaningAbortedError
from kafkapy.storage.unified_log import UnifiedLog

logger = logging.getLogger(__name__)

_PER_DIRECTORY = ("logDirectory",)
UNCLEANABLE_PARTITIONS_COUNT = Gauge(
    "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count",
    "Partitions that could not be compacted and are left alone until restart.",
    labels=_PER_DIRECTORY,
)
UNCLEANABLE_BYTES = Gauge(
    "kafka.log:type=LogCleanerManager,name=uncleanable-bytes",
    "Bytes to compact in partitions that are left alone.",
    labels=_PER_DIRECTORY,
)
MAX_DIRTY_PERCENT = Gauge(
    "kafka.log:type=LogCleanerManager,name=max-dirty-percent",
    "The share of the dirtiest log that was not compacted when last looked at.",
)
TIME_SINCE_LAST_RUN_MS = Gauge(
    "kafka.log:type=LogCleanerManager,name=time-since-last-run-ms",
    "How long ago somebody looked for a log to compact.",
)

Logs = Callable[[], Mapping[TopicPartition, UnifiedLog]]


class OffsetsToClean(NamedTuple):
    """Ports: kafka.log.OffsetsToClean"""

    first_dirty_offset: int
    first_uncleanable_dirty_offset: int
    force_update_checkpoint: bool


class LogCleanerManager:
    """The state of compaction of every partition, and how far each is compacted. Thread-safe.

    A partition without a state is free. Whoever wants it for itself pauses its compaction and
    waits until a thread that is at it has noticed.

        free → in progress → free
               in progress → aborted → paused(1)
        free → paused(1) → paused(2) → …

    Ports: kafka.log.LogCleanerManager
    """

    def __init__(
        self, log_dirs: Iterable[str], logs: Logs, environment: StorageEnvironment
    ) -> None:
        # constant after construction
        self._logs = logs
        self._environment = environment
        self._time = environment.time
        self._log_dirs = tuple(log_dirs)
        self._paused = threading.Condition(threading.RLock())
        # guarded by self._paused
        self._checkpoints = {path: self._open_checkpoint(path) for path in self._log_dirs}
        self._in_progress: dict[TopicPartition, LogCleaningState] = {}
        self._uncleanable: dict[str, set[TopicPartition]] = {}  # by log directory
        self._dirtiest_log_cleanable_ratio = 0.0
        self._time_of_last_run_ms = self._time.hi_res_clock_ms()
        self._register_metrics()

    # --- what is to be done

    def grab_filthiest_compacted_log(self, pre_clean_stats: PreCleanStats) -> LogToClean | None:
        """The log with the largest share of dirty bytes, which is the caller's until
        `done_cleaning`; None if no log has enough of them."""
        with self._paused:
            self._time_of_last_run_ms = self._time.hi_res_clock_ms()
            last_clean = self._all_cleaner_checkpoints()
            dirty = []
            for topic_partition, log in self._logs().items():
                if log.config.compact and self._is_free(topic_partition, log):
                    found = self._measure(log, last_clean.get(topic_partition), pre_clean_stats)
                    if found is not None and found.total_bytes > 0:
                        dirty.append(found)
            self._dirtiest_log_cleanable_ratio = max(
                (found.cleanable_ratio for found in dirty), default=0.0
            )
            cleanable = [
                found
                for found in dirty
                if (found.needs_compaction_now and found.cleanable_bytes > 0)
                or found.cleanable_ratio > found.log.config.min_cleanable_dirty_ratio
            ]
            if not cleanable:
                return None
            pre_clean_stats.cleanable_partitions = len(cleanable)
            filthiest = max(cleanable, key=lambda found: found.cleanable_ratio)
            self._in_progress[filthiest.topic_partition] = LogCleaningInProgress()
            return filthiest

    def pause_cleaning_for_non_compacted_partitions(self) -> tuple[UnifiedLog, ...]:
        """The logs that retention alone looks after; they are not compacted until
        `resume_cleaning`, even if their policy changes."""
        with self._paused:
            found = tuple(
                log
                for topic_partition, log in self._logs().items()
                if not log.config.compact and topic_partition not in self._in_progress
            )
            for log in found:
                self._in_progress[log.topic_partition] = LogCleaningPaused(1)
            return found

    def deletable_logs(self) -> tuple[UnifiedLog, ...]:
        """The compacted logs, to be rid of segments before their start or, with
        cleanup.policy=compact,delete, of old ones. They are the caller's until `done_deleting`."""
        with self._paused:
            found = tuple(
                log
                for topic_partition, log in self._logs().items()
                if log.config.compact and self._is_free(topic_partition, log)
            )
            for log in found:
                self._in_progress[log.topic_partition] = LogCleaningInProgress()
            return found

    # --- whose a partition is

    def abort_cleaning(self, topic_partition: TopicPartition) -> None:
        """Returns when no thread works on the partition; one may begin again at once."""
        with self._paused:
            self.abort_and_pause_cleaning(topic_partition)
            self.resume_cleaning((topic_partition,))

    def abort_and_pause_cleaning(self, topic_partition: TopicPartition) -> None:
        """Returns when no thread works on the partition, and none will until
        `resume_cleaning`."""
        with self._paused:
            # Whoever aborts work that somebody else has aborted waits for the same thread.
            self._await_abort_locked(topic_partition)
            match self._in_progress.get(topic_partition):
                case None:
                    self._in_progress[topic_partition] = LogCleaningPaused(1)
                case LogCleaningPaused(count):
                    self._in_progress[topic_partition] = LogCleaningPaused(count + 1)
                case _:
                    self._in_progress[topic_partition] = LogCleaningAborted()
                    # The thread that lets go leaves it paused, once, for us.
                    self._await_abort_locked(topic_partition)

    def resume_cleaning(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """As often as it was paused."""
        with self._paused:
            for topic_partition in topic_partitions:
                match self._in_progress.get(topic_partition):
                    case LogCleaningPaused(1):
                        del self._in_progress[topic_partition]
                    case LogCleaningPaused(count):
                        self._in_progress[topic_partition] = LogCleaningPaused(count - 1)
                    case state:
                        raise KafkaError(
                            f"Compaction of {topic_partition} cannot be resumed: it is "
                            f"{state or 'not paused'}"
                        )

    def check_cleaning_aborted(self, topic_partition: TopicPartition) -> None:
        """Raises LogCleaningAbortedError if the thread that asks shall stop."""
        with self._paused:
            if isinstance(self._in_progress.get(topic_partition), LogCleaningAborted):
                raise LogCleaningAbortedError(f"Compaction of {topic_partition} was aborted")

    def done_cleaning(self, topic_partition: TopicPartition, log_dir: str, end_offset: int) -> None:
        """The log is compacted up to `end_offset`, unless that was aborted."""
        with self._paused:
            if self._let_go_locked(topic_partition):
                self.update_checkpoints(log_dir, update=(topic_partition, end_offset))

    def done_deleting(self, topic_partitions: Iterable[TopicPartition]) -> None:
        with self._paused:
            for topic_partition in topic_partitions:
                self._let_go_locked(topic_partition)

    # --- how far partitions are compacted

    def update_checkpoints(
        self,
        log_dir: str,
        *,
        update: tuple[TopicPartition, int] | None = None,
        remove: TopicPartition | None = None,
    ) -> None:
        """Also forgets the partitions that are not in the directory any more."""
        with self._paused:
            checkpoint = self._checkpoints.get(log_dir)
            if checkpoint is None:
                return
            try:
                existing = self._logs()
                offsets = {tp: offset for tp, offset in checkpoint.read().items() if tp in existing}
                if remove is not None:
                    offsets.pop(remove, None)
                if update is not None:
                    offsets[update[0]] = update[1]
                checkpoint.write(offsets)
            except KafkaStorageError as e:
                logger.error("%s could not be updated: %s", checkpoint.path, e)

    def maybe_truncate_checkpoint(self, log: UnifiedLog, offset: int) -> None:
        """The log was cut: what is written at and above the offset from now on is dirty."""
        with self._paused:
            checkpoint = self._checkpoints.get(log.parent_dir)
            if checkpoint is None or not log.config.compact:
                return
            existing = checkpoint.read()
            if existing.get(log.topic_partition, 0) > offset:
                checkpoint.write({**existing, log.topic_partition: offset})

    def handle_log_dir_failure(self, log_dir: str) -> None:
        """Nothing is written to a directory that has failed."""
        with self._paused:
            if self._checkpoints.pop(log_dir, None) is not None:
                logger.warning("Logs in %s are no longer compacted", log_dir)

    # --- partitions that cannot be compacted

    def mark_partition_uncleanable(self, log: UnifiedLog) -> None:
        with self._paused:
            # A new topic of that name is not to blame.
            if self._logs().get(log.topic_partition) is log:
                self._uncleanable.setdefault(log.parent_dir, set()).add(log.topic_partition)

    def uncleanable_partitions(self, log_dir: str) -> frozenset[TopicPartition]:
        with self._paused:
            return frozenset(self._uncleanable.get(log_dir, ()))

    def maintain_uncleanable_partitions(self) -> None:
        """Forgets those that were deleted."""
        with self._paused:
            if not self._uncleanable:
                return
            existing = self._logs()
            kept = {
                log_dir: {tp for tp in partitions if tp in existing}
                for log_dir, partitions in self._uncleanable.items()
            }
            self._uncleanable = {log_dir: tps for log_dir, tps in kept.items() if tps}

    def remove_metrics(self) -> None:
        metrics = self._environment.metrics
        for log_dir in self._log_dirs:
            metrics.remove(UNCLEANABLE_PARTITIONS_COUNT, logDirectory=log_dir)
            metrics.remove(UNCLEANABLE_BYTES, logDirectory=log_dir)
        metrics.remove(MAX_DIRTY_PERCENT)
        metrics.remove(TIME_SINCE_LAST_RUN_MS)

    # --- with the lock held

    def _is_free(self, topic_partition: TopicPartition, log: UnifiedLog) -> bool:
        return topic_partition not in self._in_progress and (
            topic_partition not in self._uncleanable.get(log.parent_dir, ())
        )

    def _await_abort_locked(self, topic_partition: TopicPartition) -> None:
        self._paused.wait_for(
            lambda: not isinstance(self._in_progress.get(topic_partition), LogCleaningAborted)
        )

    def _let_go_locked(self, topic_partition: TopicPartition) -> bool:
        """Whether the work was not aborted."""
        match self._in_progress.get(topic_partition):
            case LogCleaningInProgress():
                del self._in_progress[topic_partition]
                return True
            case LogCleaningAborted():
                self._in_progress[topic_partition] = LogCleaningPaused(1)
                self._paused.notify_all()
                return False
            case state:
                raise KafkaError(f"{topic_partition} is not being compacted, but {state}")

    def _measure(
        self, log: UnifiedLog, last_clean_offset: int | None, pre_clean_stats: PreCleanStats
    ) -> LogToClean | None:
        """None, and the partition is marked, if the log cannot be looked at."""
        now_ms = self._time.milliseconds()
        try:
            offsets = cleanable_offsets(log, last_clean_offset, now_ms)
            if offsets.force_update_checkpoint:
                self.update_checkpoints(
                    log.parent_dir, update=(log.topic_partition, offsets.first_dirty_offset)
                )
            delay_ms = max_compaction_delay(log, offsets.first_dirty_offset, now_ms)
            pre_clean_stats.update_max_compaction_delay(delay_ms)
            return LogToClean.measure(
                log,
                offsets.first_dirty_offset,
                offsets.first_uncleanable_dirty_offset,
                needs_compaction_now=delay_ms > 0,
            )
        except Exception as e:
            logger.warning(
                "%s is not compacted any more: what there is to compact cannot be told: %s",
                log.topic_partition,
                e,
                exc_info=True,
            )
            self.mark_partition_uncleanable(log)
            return None

    def _all_cleaner_checkpoints(self) -> dict[TopicPartition, int]:
        offsets: dict[TopicPartition, int] = {}
        for checkpoint in self._checkpoints.values():
            try:
                offsets.update(checkpoint.read())
            except KafkaStorageError as e:
                logger.error("%s could not be read: %s", checkpoint.path, e)
        return offsets

    def _open_checkpoint(self, log_dir: str) -> OffsetCheckpointFile:
        return OffsetCheckpointFile(
            os.path.join(log_dir, CLEANER_OFFSET_CHECKPOINT_FILE),
            file_system=self._environment.file_system,
            log_dir_failure_channel=self._environment.log_dir_failure_channel,
        )

    def _register_metrics(self) -> None:
        metrics = self._environment.metrics
        for log_dir in self._log_dirs:
            metrics.gauge(
                UNCLEANABLE_PARTITIONS_COUNT,
                lambda log_dir=log_dir: len(self.uncleanable_partitions(log_dir)),  # type: ignore[misc]
                logDirectory=log_dir,
            )
            metrics.gauge(
                UNCLEANABLE_BYTES,
                lambda log_dir=log_dir: self._uncleanable_bytes(log_dir),  # type: ignore[misc]
                logDirectory=log_dir,
            )
        metrics.gauge(MAX_DIRTY_PERCENT, lambda: int(100 * self._dirtiest_log_cleanable_ratio))
        metrics.gauge(
            TIME_SINCE_LAST_RUN_MS,
            lambda: self._time.hi_res_clock_ms() - self._time_of_last_run_ms,
        )

    def _uncleanable_bytes(self, log_dir: str) -> int:
        with self._paused:
            partitions = self.uncleanable_partitions(log_dir)
            if not partitions:
                return 0
            last_clean = self._all_cleaner_checkpoints()
            now_ms = self._time.milliseconds()
            total = 0
            for topic_partition, log in self._logs().items():
                if topic_partition in partitions:
                    offsets = cleanable_offsets(log, last_clean.get(topic_partition), now_ms)
                    total += calculate_cleanable_bytes(
                        log, offsets.first_dirty_offset, offsets.first_uncleanable_dirty_offset
                    )[1]
            return total


def max_compaction_delay(log: UnifiedLog, first_dirty_offset: int, now_ms: int) -> int:
    """By how much the oldest dirty segment is beyond max.compaction.lag.ms; 0 if it is not.

    Ports: kafka.log.LogCleanerManager.maxCompactionDelay
    """
    clean_until_ms = now_ms - log.config.max_compaction_lag_ms
    if clean_until_ms <= 0:
        return 0
    timestamps = (
        segment.first_batch_timestamp
        for segment in log.non_active_segments_from(first_dirty_offset)
    )
    earliest = min((timestamp for timestamp in timestamps if timestamp), default=clean_until_ms)
    return max(clean_until_ms - earliest, 0)


def cleanable_offsets(
    log: UnifiedLog, last_clean_offset: int | None, now_ms: int
) -> OffsetsToClean:
    """Where the dirty part of a log begins and how far it may be compacted: not beyond the last
    stable offset, not the active segment, nothing younger than min.compaction.lag.ms.

    Ports: kafka.log.LogCleanerManager.cleanableOffsets
    """
    log_start_offset = log.log_start_offset
    first_dirty = log_start_offset if last_clean_offset is None else last_clean_offset
    is_impossible = not log_start_offset <= first_dirty <= log.log_end_offset
    if is_impossible:
        if not log.config.delete:
            # With retention the start moves past it as a matter of course.
            logger.warning(
                "%s is compacted from its start again: the checkpoint %d is outside the log "
                "(%d to %d)",
                log.topic_partition,
                first_dirty,
                log_start_offset,
                log.log_end_offset,
            )
        first_dirty = log_start_offset
    first_uncleanable = min(log.last_stable_offset, log.active_segment.base_offset)
    min_lag_ms = log.config.min_compaction_lag_ms
    if min_lag_ms > 0:
        for segment in log.non_active_segments_from(first_dirty):
            if segment.largest_timestamp > now_ms - min_lag_ms:
                first_uncleanable = min(first_uncleanable, segment.base_offset)
                break
    return OffsetsToClean(first_dirty, max(first_dirty, first_uncleanable), is_impossible)
