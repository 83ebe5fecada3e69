"""The segments of a log as one sequence of records."""

import contextlib
import logging
import os
from collections.abc import Iterable

from kafkapy.common.errors import KafkaError, OffsetOutOfRangeError
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from kafkapy.storage.fetch_data_info import FetchDataInfo
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_file_utils import (
    CLEANED_FILE_SUFFIX,
    DELETED_FILE_SUFFIX,
    SWAP_FILE_SUFFIX,
    log_file,
    offset_index_file,
    time_index_file,
    transaction_index_file,
)
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.offset_index import OffsetPosition
from kafkapy.storage.storage_environment import LOG_FLUSH_RATE_AND_TIME_MS, StorageEnvironment
from kafkapy.storage.transaction_index import AbortedTxn

logger = logging.getLogger(__name__)


class LocalLog:
    """An append-only log on disk, from its first segment to its end. Reading is thread-safe;
    changes need the lock of the UnifiedLog around it.

    Ports: kafka.log.LocalLog
    """

    def __init__(
        self,
        directory: str,
        config: LogConfig,
        segments: LogSegments,
        *,
        recovery_point: int,
        next_offset_metadata: LogOffsetMetadata,
        topic_partition: TopicPartition,
        environment: StorageEnvironment,
    ) -> None:
        # constant after construction
        self.segments = segments
        self.topic_partition = topic_partition
        self._environment = environment
        self._file_system = environment.file_system
        self._flush_times = environment.metrics.histogram(LOG_FLUSH_RATE_AND_TIME_MS)
        # written under the lock of UnifiedLog, read by anyone
        self.dir = directory
        self.parent_dir = os.path.dirname(directory)
        self.config = config
        self.recovery_point = recovery_point
        # Published last by an append: a reader that sees it sees the records before it.
        self.log_end_offset_metadata = next_offset_metadata
        self.last_flush_ms = environment.time.milliseconds()

    @property
    def log_end_offset(self) -> int:
        return self.log_end_offset_metadata.message_offset

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset_metadata.message_offset - self.recovery_point

    def append(
        self,
        last_offset: int,
        *,
        largest_timestamp: int,
        shallow_offset_of_max_timestamp: int,
        records: MemoryRecords,
    ) -> None:
        """To the active segment; the log ends after `last_offset` then."""
        segment = self.segments.active_segment
        segment.append(
            last_offset,
            largest_timestamp=largest_timestamp,
            shallow_offset_of_max_timestamp=shallow_offset_of_max_timestamp,
            records=records,
        )
        self.log_end_offset_metadata = LogOffsetMetadata(
            last_offset + 1, segment.base_offset, segment.log.size_in_bytes
        )

    def read(
        self,
        start_offset: int,
        max_length: int,
        *,
        min_one_message: bool,
        max_offset_metadata: LogOffsetMetadata,
        include_aborted_txns: bool,
    ) -> FetchDataInfo:
        """Records from an offset on, as far as the reader may see.

        Raises OffsetOutOfRangeError beyond the log end or before the first segment.
        """
        segment = self.segments.floor_segment(start_offset)
        end_offset = self.log_end_offset_metadata.message_offset
        if segment is None or start_offset > end_offset:
            raise OffsetOutOfRangeError(
                f"Offset {start_offset} of {self.topic_partition} was asked for, but the log "
                f"ends at {end_offset}"
            )
        max_offset = max_offset_metadata.message_offset
        if start_offset >= max_offset:
            metadata = (
                max_offset_metadata
                if start_offset == max_offset
                else self.convert_to_offset_metadata_or_raise(start_offset)
            )
            return FetchDataInfo(
                metadata, MemoryRecords.EMPTY, False, () if include_aborted_txns else None
            )
        while segment is not None:
            base_offset = segment.base_offset
            # The segment the view ends in is cut there, those before it are seen whole, and
            # without knowing the position nothing can be served.
            max_position: int | None
            if base_offset < max_offset_metadata.segment_base_offset:
                max_position = segment.size
            elif base_offset == max_offset_metadata.segment_base_offset:
                max_position = max_offset_metadata.relative_position_in_segment
            else:
                max_position = None
            info = segment.read(
                start_offset,
                max_length,
                max_position=max_position,
                min_one_message=min_one_message,
            )
            if info is not None:
                if include_aborted_txns:
                    return self._add_aborted_transactions(start_offset, segment, info)
                return info
            segment = self.segments.higher_segment(base_offset)
        # Every record from the offset to the end has been compacted away.
        return FetchDataInfo(self.log_end_offset_metadata, MemoryRecords.EMPTY)

    def convert_to_offset_metadata_or_raise(self, offset: int) -> LogOffsetMetadata:
        """Finds an offset's place on disk; raises OffsetOutOfRangeError."""
        return self.read(
            offset,
            1,
            min_one_message=False,
            max_offset_metadata=self.log_end_offset_metadata,
            include_aborted_txns=False,
        ).fetch_offset_metadata

    def collect_aborted_transactions(
        self, start_offset: int, upper_bound_offset: int
    ) -> list[AbortedTxn]:
        segment = self.segments.floor_segment(start_offset)
        return self._collect_aborted(start_offset, upper_bound_offset, segment)

    def flush(self, offset: int) -> None:
        """Forces everything before an offset to disk."""
        recovery_point = self.recovery_point
        if recovery_point > offset:
            return
        time = self._environment.time
        new_segments = False
        for segment in self.segments.values_between(recovery_point, offset):
            start_ns = time.nanoseconds()
            segment.flush()
            self._flush_times.update((time.nanoseconds() - start_ns) / 1_000_000)
            new_segments = new_segments or segment.base_offset >= recovery_point
        if new_segments:
            # The log may have been renamed for deletion meanwhile.
            with contextlib.suppress(FileNotFoundError):
                self._file_system.fsync_dir(self.dir)

    def mark_flushed(self, offset: int) -> None:
        if offset > self.recovery_point:
            self.recovery_point = offset
            self.last_flush_ms = self._environment.time.milliseconds()

    def update_log_end_offset(self, end_offset: int) -> None:
        segment = self.segments.active_segment
        self.log_end_offset_metadata = LogOffsetMetadata(
            end_offset, segment.base_offset, segment.size
        )
        if self.recovery_point > end_offset:
            self.recovery_point = end_offset

    def roll(self, expected_next_offset: int = 0) -> LogSegment:
        """Begins a new active segment at the log end, or at a given offset beyond it."""
        new_offset = max(expected_next_offset, self.log_end_offset)
        active = self.segments.last_segment
        if active is not None and new_offset in self.segments:
            if active.base_offset != new_offset or active.size:
                raise KafkaError(
                    f"{self.topic_partition} cannot roll to {new_offset}: a segment that is not "
                    "empty begins there"
                )
            # The index of an empty segment is full, for example after a truncation.
            logger.warning("%s: replacing the empty segment %d", self.topic_partition, new_offset)
            new_segment = self.create_and_delete_segment(new_offset, active, "it is empty")
        elif active is not None and new_offset < active.base_offset:
            raise KafkaError(
                f"{self.topic_partition} cannot roll to {new_offset}, before the active segment "
                f"at {active.base_offset}"
            )
        else:
            for path in self._delete_files(new_offset):
                logger.warning("%s: deleted the left-over file %s", self.topic_partition, path)
            if active is not None:
                active.on_become_inactive_segment()
            new_segment = self.open_segment(new_offset)
            self.segments.add(new_segment)
        # The end stays where it is, but now lies in the new segment.
        self.update_log_end_offset(self.log_end_offset)
        return new_segment

    def open_segment(self, base_offset: int) -> LogSegment:
        return LogSegment.open(
            self.dir,
            base_offset,
            self.config,
            file_system=self._file_system,
            time=self._environment.time,
            roll_jitter_ms=self.config.random_segment_jitter(self._environment.rng),
        )

    def create_and_delete_segment(
        self, new_offset: int, segment_to_delete: LogSegment, reason: str
    ) -> LogSegment:
        """Puts an empty segment in another's place; there is always an active one meanwhile."""
        if new_offset == segment_to_delete.base_offset:
            segment_to_delete.change_file_suffixes("", DELETED_FILE_SUFFIX)
        new_segment = self.open_segment(new_offset)
        self.segments.add(new_segment)
        if new_offset != segment_to_delete.base_offset:
            self.segments.remove(segment_to_delete.base_offset)
        self._delete_segment_files((segment_to_delete,), reason)
        return new_segment

    def remove_and_delete_segments(self, segments: Iterable[LogSegment], reason: str) -> None:
        """Takes segments out of the log; their files go after file.delete.delay.ms."""
        doomed = tuple(segments)
        for segment in doomed:
            self.segments.remove(segment.base_offset)
        self._delete_segment_files(doomed, reason)

    def new_cleaned_segment(self, base_offset: int) -> LogSegment:
        """An empty segment beside the log, for the result of a compaction."""
        self._delete_files(base_offset, CLEANED_FILE_SUFFIX)
        return LogSegment.open(
            self.dir,
            base_offset,
            self.config,
            file_system=self._file_system,
            time=self._environment.time,
            suffix=CLEANED_FILE_SUFFIX,
        )

    def replace_segments(
        self, new_segments: Iterable[LogSegment], old_segments: Iterable[LogSegment]
    ) -> tuple[LogSegment, ...]:
        """Puts compacted segments in the place of others; returns those that no new one replaces.

        After a crash the loader finds files ending in .cleaned, and drops them, or all new ones
        ending in .swap, and finishes what was begun here: readers never see half of it.
        """
        ordered = sorted(new_segments, key=lambda segment: segment.base_offset)
        # Retention may have taken some of them meanwhile.
        doomed = [segment for segment in old_segments if segment.base_offset in self.segments]
        # The first one last: as long as a .cleaned file is left, the .swap files do not count.
        for segment in reversed(ordered):
            segment.change_file_suffixes(CLEANED_FILE_SUFFIX, SWAP_FILE_SUFFIX)
        for segment in reversed(ordered):
            self.segments.add(segment)
        new_offsets = {segment.base_offset for segment in ordered}
        not_replaced = tuple(s for s in doomed if s.base_offset not in new_offsets)
        for segment in not_replaced:
            self.segments.remove(segment.base_offset)
        self._delete_segment_files(tuple(doomed), "compaction")
        for segment in ordered:
            segment.change_file_suffixes(SWAP_FILE_SUFFIX, "")
        self._file_system.fsync_dir(self.dir)
        return not_replaced

    def truncate_to(self, target_offset: int) -> tuple[LogSegment, ...]:
        """Removes records at and above an offset; returns the segments that went altogether."""
        doomed = tuple(s for s in self.segments.values() if s.base_offset > target_offset)
        # The last one first: a crash in between must leave no hole.
        self.remove_and_delete_segments(reversed(doomed), f"truncation to {target_offset}")
        self.segments.active_segment.truncate_to(target_offset)
        self.update_log_end_offset(target_offset)
        return doomed

    def truncate_fully_and_start_at(self, new_offset: int) -> tuple[LogSegment, ...]:
        """Removes all records; returns the segments that went."""
        doomed = self.segments.values()
        reason = f"truncation of everything, to start at {new_offset}"
        self.remove_and_delete_segments(doomed[:-1], reason)
        self.create_and_delete_segment(new_offset, doomed[-1], reason)
        self.update_log_end_offset(new_offset)
        return doomed

    def rename_dir(self, name: str) -> bool:
        """Whether the name is a new one."""
        renamed = os.path.join(self.parent_dir, name)
        if renamed == self.dir:
            return False
        self._file_system.rename(self.dir, renamed)
        self._file_system.fsync_dir(self.parent_dir)
        self.dir = renamed
        self.segments.update_parent_dir(renamed)
        return True

    def close(self) -> None:
        self.segments.close()

    def close_handlers(self) -> None:
        self.segments.close_handlers()

    def delete_all_segments(self) -> tuple[LogSegment, ...]:
        """At once, with their files."""
        doomed = self.segments.values()
        self.segments.clear()
        for segment in doomed:
            segment.delete_if_exists()
        return doomed

    def delete_dir(self) -> None:
        self._file_system.remove_tree(self.dir)

    def _add_aborted_transactions(
        self, start_offset: int, segment: LogSegment, info: FetchDataInfo
    ) -> FetchDataInfo:
        metadata = info.fetch_offset_metadata
        upper_bound = segment.fetch_upper_bound_offset(
            OffsetPosition(metadata.message_offset, metadata.relative_position_in_segment),
            info.records.size_in_bytes,
        )
        if upper_bound is None:
            higher = self.segments.higher_segment(segment.base_offset)
            upper_bound = self.log_end_offset if higher is None else higher.base_offset
        aborted = self._collect_aborted(start_offset, upper_bound, segment)
        return info._replace(aborted_transactions=tuple(aborted))

    def _collect_aborted(
        self, start_offset: int, upper_bound_offset: int, segment: LogSegment | None
    ) -> list[AbortedTxn]:
        found: list[AbortedTxn] = []
        while segment is not None:
            result = segment.collect_aborted_txns(start_offset, upper_bound_offset)
            found += result.aborted_transactions
            if result.is_complete:
                break
            segment = self.segments.higher_segment(segment.base_offset)
        return found

    def _delete_segment_files(self, segments: tuple[LogSegment, ...], reason: str) -> None:
        if not segments:
            return
        logger.info(
            "%s: deleting the segments %s for %s",
            self.topic_partition,
            [segment.base_offset for segment in segments],
            reason,
        )
        for segment in segments:
            if not segment.log.path.endswith(DELETED_FILE_SUFFIX):
                segment.change_file_suffixes("", DELETED_FILE_SUFFIX)
        # The log's directory may have a new name by then, but it stays in its parent.
        self._environment.delete_later(
            segments, "segment files", self.parent_dir, self.config.file_delete_delay_ms
        )

    def _delete_files(self, base_offset: int, suffix: str = "") -> list[str]:
        """Those of a segment that nobody uses; returns which there were."""
        paths = (
            log_file(self.dir, base_offset, suffix),
            offset_index_file(self.dir, base_offset, suffix),
            time_index_file(self.dir, base_offset, suffix),
            transaction_index_file(self.dir, base_offset, suffix),
        )
        return [path for path in paths if self._file_system.unlink_if_exists(path)]
