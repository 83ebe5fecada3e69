"""How a log comes back from disk."""

import logging
import os
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from kafkapy.common.types import TopicPartition
from kafkapy.storage.leader_epoch_file_cache import LeaderEpochFileCache
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_file_utils import (
    CLEANED_FILE_SUFFIX,
    DELETE_DIR_SUFFIX,
    DELETED_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
    is_index_file,
    is_log_file,
    log_file,
    offset_from_file_name,
)
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_state_loading import rebuild_producer_state
from kafkapy.storage.producer_state_manager import ProducerStateManager
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.storage.storage_errors import CorruptIndexError, InvalidOffsetError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedLogOffsets:
    """Ports: org.apache.kafka.storage.internals.log.LoadedLogOffsets"""

    log_start_offset: int
    recovery_point: int
    next_offset_metadata: LogOffsetMetadata


class LogLoader:
    """Loads the segments of one log, once, before anybody else knows the log. Not thread-safe.

    After a crash everything from the recovery point on is read and checked, the first batch that is
    not whole is cut off with all that follows, and indexes are built anew. After a clean shutdown
    only the ends of the files are looked at.

    Ports: kafka.log.LogLoader
    """

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        *,
        environment: StorageEnvironment,
        had_clean_shutdown: bool,
        segments: LogSegments,
        log_start_offset_checkpoint: int,
        recovery_point_checkpoint: int,
        leader_epoch_cache: LeaderEpochFileCache,
        producer_state_manager: ProducerStateManager,
    ) -> None:
        self._dir = directory
        self._topic_partition = topic_partition
        self._config = config
        self._environment = environment
        self._file_system = environment.file_system
        self._had_clean_shutdown = had_clean_shutdown
        self._segments = segments
        self._log_start_offset_checkpoint = log_start_offset_checkpoint
        self._recovery_point_checkpoint = recovery_point_checkpoint
        self._leader_epoch_cache = leader_epoch_cache
        self._producer_state_manager = producer_state_manager
        # The state at the end of the segment recovered last.
        self._recovered_producers: ProducerStateManager | None = None

    def load(self) -> LoadedLogOffsets:
        """Raises OSError; whoever asked knows what the directory is worth then."""
        swap_files = self._remove_temp_files_and_collect_swap_files()
        self._complete_swap_operations(swap_files)
        self._load_segment_files()
        if self._dir.endswith(DELETE_DIR_SUFFIX):
            if self._segments.is_empty:
                self._segments.add(self._open_segment(0))
            recovery_point = next_offset = 0
        else:
            recovery_point, next_offset = self._recover_log()
            self._segments.active_segment.resize_indexes(self._config.segment_index_bytes)
        self._leader_epoch_cache.truncate_from_end_async_flush(next_offset)
        first = self._segments.first_segment
        log_start_offset = max(
            self._log_start_offset_checkpoint, 0 if first is None else first.base_offset
        )
        # The epochs may not have been written when the log start offset went up.
        self._leader_epoch_cache.truncate_from_start_async_flush(log_start_offset)
        # Recovery has used a state of its own and may have deleted snapshots.
        self._producer_state_manager.remove_stray_snapshots(self._segments.base_offsets())
        recovered = self._recovered_producers
        if recovered is not None and recovered.map_end_offset == next_offset:
            # A snapshot keeps one batch of each producer, recovery has seen all: a producer that
            # sends its last five again after the crash must get the old answers.
            self._producer_state_manager.take_over(recovered, log_start_offset)
        else:
            rebuild_producer_state(
                self._producer_state_manager,
                self._segments,
                log_start_offset=log_start_offset,
                last_offset=next_offset,
                time=self._environment.time,
                # Building indexes anew takes away the snapshots of what comes after.
                reload_from_clean_shutdown=self._had_clean_shutdown and recovered is None,
            )
        active = self._segments.active_segment
        return LoadedLogOffsets(
            log_start_offset,
            recovery_point,
            LogOffsetMetadata(next_offset, active.base_offset, active.size),
        )

    def _path(self, name: str) -> str:
        return f"{self._dir}/{name}"

    def _open_segment(
        self, base_offset: int, *, file_already_exists: bool = False, suffix: str = ""
    ) -> LogSegment:
        return LogSegment.open(
            self._dir,
            base_offset,
            self._config,
            file_system=self._file_system,
            time=self._environment.time,
            roll_jitter_ms=self._config.random_segment_jitter(self._environment.rng),
            file_already_exists=file_already_exists,
            suffix=suffix,
        )

    def _remove_temp_files_and_collect_swap_files(self) -> list[str]:
        """What was to be deleted goes; so does the output of an unfinished compaction."""
        swap_files: list[str] = []
        cleaned_files: list[str] = []
        for name in self._file_system.listdir(self._dir):
            if name.endswith(DELETED_FILE_SUFFIX):
                self._file_system.unlink(self._path(name))
            elif name.endswith(CLEANED_FILE_SUFFIX):
                cleaned_files.append(name)
            elif name.endswith(SWAP_FILE_SUFFIX):
                swap_files.append(name)
        cleaned_offsets = [offset_from_file_name(name) or 0 for name in cleaned_files]
        if cleaned_offsets:
            # A split renames its results one by one, last first: with a .cleaned file left, the
            # .swap files behind it are not all there.
            first_cleaned = min(cleaned_offsets)
            unfinished = [n for n in swap_files if (offset_from_file_name(n) or 0) >= first_cleaned]
            swap_files = [name for name in swap_files if name not in unfinished]
            for name in cleaned_files + unfinished:
                logger.info("%s: deleting the unfinished file %s", self._topic_partition, name)
                self._file_system.unlink(self._path(name))
        return swap_files

    def _complete_swap_operations(self, swap_files: list[str]) -> None:
        """The .swap segments replace all segments in their range, as they were about to."""
        if not swap_files:
            return
        starts, ends = [], []
        for name in swap_files:
            base_offset = offset_from_file_name(name)
            if base_offset is None or not is_log_file(name.removesuffix(SWAP_FILE_SUFFIX)):
                continue
            segment = self._open_segment(
                base_offset, file_already_exists=True, suffix=SWAP_FILE_SUFFIX
            )
            starts.append(base_offset)
            ends.append(segment.read_next_offset())
            segment.close()
        if starts:
            for name in self._file_system.listdir(self._dir):
                offset = offset_from_file_name(name)
                is_segment_file = is_log_file(name) or is_index_file(name)
                # Also a segment that nothing is left of: it must not keep the old indexes.
                is_replaced = offset in starts or min(starts) <= (offset or 0) < max(ends)
                if offset is not None and is_segment_file and is_replaced:
                    logger.info("%s: %s has been compacted", self._topic_partition, name)
                    self._file_system.unlink(self._path(name))
        for name in self._file_system.listdir(self._dir):
            if name.endswith(SWAP_FILE_SUFFIX):
                target = self._path(name.removesuffix(SWAP_FILE_SUFFIX))
                logger.info("%s: %s takes its place", self._topic_partition, name)
                self._file_system.rename(self._path(name), target)

    def _load_segment_files(self) -> None:
        # In order of offsets: recovering one segment needs the producers of those before it.
        names = sorted(self._file_system.listdir(self._dir))
        starts = [offset_from_file_name(name) or 0 for name in names if is_log_file(name)]
        next_starts = dict(pairwise(starts))
        first_unflushed = self._first_unflushed_segment(starts)
        for name in names:
            base_offset = offset_from_file_name(name)
            if base_offset is None:
                continue
            if is_index_file(name):
                if not self._file_system.exists(log_file(self._dir, base_offset)):
                    logger.warning("%s: deleting the orphan %s", self._topic_partition, name)
                    self._file_system.unlink(self._path(name))
            elif is_log_file(name):
                segment = self._open_segment(base_offset, file_already_exists=True)
                # What is about to be recovered gets new indexes in any case.
                if first_unflushed is None or base_offset < first_unflushed:
                    self._ensure_indexes(segment, next_starts.get(base_offset))
                self._segments.add(segment)

    def _first_unflushed_segment(self, starts: list[int]) -> int | None:
        """The base offset from which on `_recover_log` reads the segments; None after a clean stop.

        That is the segment in which the recovery point lies.
        """
        if self._had_clean_shutdown or self._dir.endswith(DELETE_DIR_SUFFIX):
            return None
        flushed = [start for start in starts if start <= self._recovery_point_checkpoint]
        return max(flushed, default=0)

    def _ensure_indexes(self, segment: LogSegment, next_base_offset: int | None) -> None:
        try:
            segment.sanity_check()
        except (FileNotFoundError, CorruptIndexError) as e:
            logger.warning(
                "%s: building the indexes of segment %d anew: %s",
                self._topic_partition,
                segment.base_offset,
                e,
            )
            self._recover_segment(segment, next_base_offset)

    def _recover_log(self) -> tuple[int, int]:
        """The recovery point and the log end offset."""
        if not self._had_clean_shutdown:
            self._recover_unflushed_segments()
        log_end_offset = self._delete_segments_if_log_start_is_beyond_log_end()
        if self._segments.is_empty:
            self._segments.add(self._open_segment(self._log_start_offset_checkpoint))
        if log_end_offset is None:
            log_end_offset = self._segments.active_segment.read_next_offset()
        elif self._had_clean_shutdown:
            return log_end_offset, log_end_offset
        # Only flushing moves the recovery point on: a second crash must scan the same again.
        return min(self._recovery_point_checkpoint, log_end_offset), log_end_offset

    def _recover_unflushed_segments(self) -> None:
        unflushed = self._segments.values_between(self._recovery_point_checkpoint)
        for index, segment in enumerate(unflushed):
            if segment.base_offset not in self._segments:
                # It came after a hole.
                return
            logger.info(
                "%s: recovering segment %d (%d of %d)",
                self._topic_partition,
                segment.base_offset,
                index + 1,
                len(unflushed),
            )
            following = self._segments.higher_segment(segment.base_offset)
            try:
                truncated = self._recover_segment(
                    segment, None if following is None else following.base_offset
                )
            except InvalidOffsetError as e:
                logger.warning(
                    "%s: segment %d has invalid offsets and is emptied: %s",
                    self._topic_partition,
                    segment.base_offset,
                    e,
                )
                self._delete_segments_after_hole(segment)
                truncated = segment.truncate_to(segment.base_offset)
            if truncated > 0:
                logger.warning(
                    "%s: %d bytes of segment %d are cut off after the last whole batch",
                    self._topic_partition,
                    truncated,
                    segment.base_offset,
                )

    def _delete_segments_after_hole(self, segment: LogSegment) -> None:
        """A segment is about to be cut: what comes after a hole cannot be served.

        Before the cut, for a crash in between must not leave a segment that looks whole in front of
        the hole; and the last one first, so that it leaves none behind one either.
        """
        following = [s for s in self._segments.values() if s.base_offset > segment.base_offset]
        self._delete_segments(tuple(reversed(following)))

    def _recover_segment(self, segment: LogSegment, next_base_offset: int | None) -> int:
        manager = self._recovered_producers
        if manager is None or manager.map_end_offset != segment.base_offset:
            manager = ProducerStateManager(
                self._topic_partition,
                self._dir,
                config=self._producer_state_manager.config,
                file_system=self._file_system,
            )
            rebuild_producer_state(
                manager,
                self._segments,
                log_start_offset=self._log_start_offset_checkpoint,
                last_offset=segment.base_offset,
                time=self._environment.time,
                reload_from_clean_shutdown=False,
            )
        truncated = segment.recover(
            manager,
            self._leader_epoch_cache,
            next_base_offset=next_base_offset,
            may_have_gaps=self._config.compact,
            before_cut=partial(self._delete_segments_after_hole, segment),
        )
        # So that the next segment does not need this one read again.
        manager.take_snapshot()
        self._recovered_producers = manager
        return truncated

    def _delete_segments_if_log_start_is_beyond_log_end(self) -> int | None:
        """The log end offset, if there is a segment and it is a possible one."""
        if self._segments.is_empty:
            return None
        log_end_offset = self._segments.active_segment.read_next_offset()
        if log_end_offset >= self._log_start_offset_checkpoint:
            return log_end_offset
        logger.warning(
            "%s: the log ends at %d, before its start offset %d: all segments are deleted",
            self._topic_partition,
            log_end_offset,
            self._log_start_offset_checkpoint,
        )
        self._delete_segments(self._segments.values())
        self._leader_epoch_cache.clear_and_flush()
        self._producer_state_manager.truncate_fully_and_start_at(self._log_start_offset_checkpoint)
        return None

    def _delete_segments(self, segments: tuple[LogSegment, ...]) -> None:
        """Later, as always: somebody may want to look at what was cut off."""
        for segment in segments:
            self._segments.remove(segment.base_offset)
            segment.change_file_suffixes("", DELETED_FILE_SUFFIX)
        if not segments:
            return
        logger.warning(
            "%s: deleting the segments %s",
            self._topic_partition,
            [segment.base_offset for segment in segments],
        )

        self._environment.delete_later(
            segments,
            "segment files",
            os.path.dirname(self._dir),
            self._config.file_delete_delay_ms,
        )
