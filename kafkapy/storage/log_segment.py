"""One segment of a log: a file of records with its indexes."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import partial

from kafkapy.common.errors import CorruptRecordError, InvalidRecordError
from kafkapy.common.record.file_records import FileRecords, LogOffsetPosition, TimestampAndOffset
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record_batch import MAGIC_VALUE_V2, RecordBatch
from kafkapy.storage.abstract_index import INT_MAX
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.batch_order import in_offset_order
from kafkapy.storage.fetch_data_info import FetchDataInfo
from kafkapy.storage.file_system import FileSystem, StorageChannel
from kafkapy.storage.index_sanity import check_offset_index, check_time_index
from kafkapy.storage.lazy_index import LazyIndex
from kafkapy.storage.leader_epoch_file_cache import LeaderEpochFileCache
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_file_utils import (
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    filename_prefix_from_offset,
)
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.offset_index import OffsetIndex, OffsetPosition
from kafkapy.storage.producer_state_manager import ProducerStateManager
from kafkapy.storage.storage_errors import LogSegmentOffsetOverflowError
from kafkapy.storage.time_index import UNKNOWN_TIMESTAMP_OFFSET, TimeIndex, TimestampOffset
from kafkapy.storage.transaction_index import (
    AbortedTxn,
    CompletedTxn,
    TransactionIndex,
    TxnIndexSearchResult,
)
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)


class LogSegment:
    """Records from a base offset on, with a sparse offset index, time index and transaction index.

    One thread at a time may append, truncate or roll (the log's lock sees to it); any may read.

    Ports: org.apache.kafka.storage.internals.log.LogSegment
    """

    __slots__ = (
        "_bytes_since_last_index_entry",
        "_channel",
        "_created_ms",
        "_file_system",
        "_index_interval_bytes",
        "_max_timestamp_and_offset",
        "_offset_index",
        "_roll_jitter_ms",
        "_rolling_based_timestamp",
        "_time",
        "_time_index",
        "_timestamp_lock",
        "base_offset",
        "log",
        "transaction_index",
    )

    def __init__(
        self,
        channel: StorageChannel,
        log: FileRecords,
        *,
        offset_index: LazyIndex[OffsetIndex],
        time_index: LazyIndex[TimeIndex],
        transaction_index: TransactionIndex,
        base_offset: int,
        index_interval_bytes: int,
        roll_jitter_ms: int,
        file_system: FileSystem,
        time: Time,
    ) -> None:
        # constant after construction
        self._channel = channel
        self.log = log
        self._offset_index = offset_index
        self._time_index = time_index
        self.transaction_index = transaction_index
        self.base_offset = base_offset
        self._index_interval_bytes = index_interval_bytes
        self._roll_jitter_ms = roll_jitter_ms
        self._file_system = file_system
        self._time = time
        # guarded by the log's lock
        self._created_ms = time.milliseconds()
        self._bytes_since_last_index_entry = 0
        # The time of the first batch, by which the segment's age is measured; None until known.
        self._rolling_based_timestamp: int | None = None
        # Unknown until somebody asks. Looking it up needs this lock and not the log's, so that what
        # an append has found meanwhile is not overwritten.
        self._timestamp_lock = threading.Lock()
        self._max_timestamp_and_offset = UNKNOWN_TIMESTAMP_OFFSET

    @classmethod
    def open(
        cls,
        directory: str,
        base_offset: int,
        config: LogConfig,
        *,
        file_system: FileSystem,
        time: Time,
        roll_jitter_ms: int = 0,
        file_already_exists: bool = False,
        suffix: str = "",
    ) -> LogSegment:
        """A new segment, or one whose file is there already."""
        prefix = f"{directory}/{filename_prefix_from_offset(base_offset)}"
        channel = file_system.open(f"{prefix}{LOG_FILE_SUFFIX}{suffix}", create=True)
        if config.preallocate and not file_already_exists:
            channel.truncate(config.init_file_size)
            log = FileRecords(channel, 0, 0)
        else:
            log = FileRecords(channel)
        offset_index_path = f"{prefix}{INDEX_FILE_SUFFIX}{suffix}"
        time_index_path = f"{prefix}{TIME_INDEX_FILE_SUFFIX}{suffix}"
        return cls(
            channel,
            log,
            # Not bound to the segment: a reference back would keep a deleted file open until the
            # garbage collector runs.
            offset_index=LazyIndex(
                offset_index_path,
                file_system,
                partial(
                    OffsetIndex,
                    base_offset=base_offset,
                    max_index_size=config.segment_index_bytes,
                    file_system=file_system,
                ),
            ),
            time_index=LazyIndex(
                time_index_path,
                file_system,
                partial(
                    TimeIndex,
                    base_offset=base_offset,
                    max_index_size=config.segment_index_bytes,
                    file_system=file_system,
                ),
            ),
            transaction_index=TransactionIndex(
                base_offset, f"{prefix}{TXN_INDEX_FILE_SUFFIX}{suffix}", file_system
            ),
            base_offset=base_offset,
            index_interval_bytes=config.index_interval_bytes,
            roll_jitter_ms=roll_jitter_ms,
            file_system=file_system,
            time=time,
        )

    @property
    def offset_index(self) -> OffsetIndex:
        return self._offset_index.get()

    @property
    def time_index(self) -> TimeIndex:
        return self._time_index.get()

    @property
    def size(self) -> int:
        return self.log.size_in_bytes

    @property
    def max_timestamp_so_far(self) -> int:
        return self.max_timestamp_and_offset_so_far.timestamp

    @property
    def max_timestamp_and_offset_so_far(self) -> TimestampOffset:
        """The greatest timestamp, with the last offset of its batch."""
        found = self._max_timestamp_and_offset
        if found is UNKNOWN_TIMESTAMP_OFFSET:
            with self._timestamp_lock:
                found = self._max_timestamp_and_offset
                if found is UNKNOWN_TIMESTAMP_OFFSET:
                    found = self._max_timestamp_and_offset = self._read_largest_timestamp()
        return found

    @property
    def largest_timestamp(self) -> int:
        """By which retention judges; when the file changed, if no record has a timestamp."""
        timestamp = self.max_timestamp_so_far
        return timestamp if timestamp >= 0 else self.last_modified_ms

    @property
    def last_modified_ms(self) -> int:
        return self._channel.modified_ms()

    @last_modified_ms.setter
    def last_modified_ms(self, modified_ms: int) -> None:
        self._channel.set_modified_ms(modified_ms)

    @property
    def first_batch_timestamp(self) -> int | None:
        self._load_first_batch_timestamp()
        timestamp = self._rolling_based_timestamp
        return timestamp if timestamp is not None and timestamp >= 0 else None

    def sanity_check(self) -> None:
        """Raises FileNotFoundError or CorruptIndexError if the indexes must be built anew."""
        check_offset_index(self._offset_index.path, self.base_offset, self.log, self._file_system)
        check_time_index(self._time_index.path, self.log, self._file_system)
        self.transaction_index.sanity_check()

    def resize_indexes(self, size: int) -> None:
        self.offset_index.resize(size)
        self.time_index.resize(size)

    def should_roll(
        self,
        *,
        max_segment_ms: int,
        max_segment_bytes: int,
        messages_size: int,
        max_timestamp: int,
        max_offset: int,
    ) -> bool:
        """Whether a new segment must begin before messages of this kind are appended."""
        size = self.log.size_in_bytes
        if size > max_segment_bytes - messages_size:
            return True
        if size > 0:
            started = self._rolling_based_timestamp
            if started is None:
                started = self.first_batch_timestamp
            if started is not None and started >= 0:
                waited = max_timestamp - started
            else:
                waited = self._time.milliseconds() - self._created_ms
            if waited > max_segment_ms - self._roll_jitter_ms:
                return True
        return (
            self._offset_index.get().is_full
            or self._time_index.get().is_full
            or not 0 <= max_offset - self.base_offset <= INT_MAX
        )

    def append(
        self,
        largest_offset: int,
        *,
        largest_timestamp: int,
        shallow_offset_of_max_timestamp: int,
        records: MemoryRecords,
    ) -> None:
        """Raises LogSegmentOffsetOverflowError if the offsets are too far from the base."""
        if not 0 <= largest_offset - self.base_offset <= INT_MAX:
            raise LogSegmentOffsetOverflowError(
                f"The offset {largest_offset} does not fit the segment {self.log.path}"
            )
        position = self.log.size_in_bytes
        if position == 0:
            self._rolling_based_timestamp = largest_timestamp
        appended = self.log.append(records)
        if largest_timestamp > self.max_timestamp_so_far:
            self._max_timestamp_and_offset = TimestampOffset(
                largest_timestamp, shallow_offset_of_max_timestamp
            )
        if self._bytes_since_last_index_entry > self._index_interval_bytes:
            self._add_index_entry(largest_offset, position, self._max_timestamp_and_offset)
            self._bytes_since_last_index_entry = 0
        self._bytes_since_last_index_entry += appended

    def translate_offset(self, offset: int, starting_position: int = 0) -> LogOffsetPosition | None:
        """The first batch that ends at or after an offset; None behind the last one."""
        position = self._offset_index.get().lookup(offset).position
        return self.log.search_for_offset_with_size(offset, max(position, starting_position))

    def read(
        self,
        start_offset: int,
        max_size: int,
        *,
        max_position: int | None,
        min_one_message: bool = False,
    ) -> FetchDataInfo | None:
        """A slice from the batch that holds `start_offset`; None if that is behind the last one.

        `max_position` is where the reader's view ends; None says that it ends before this offset
        can be found, so that only the offset's place is returned.
        """
        if max_size < 0:
            raise ValueError(f"invalid max size {max_size} for a read from {self.log.path}")
        found = self.translate_offset(start_offset)
        if found is None:
            return None
        position = found.position
        metadata = LogOffsetMetadata(start_offset, self.base_offset, position)
        adjusted_max_size = max(max_size, found.size) if min_one_message else max_size
        if adjusted_max_size == 0 or max_position is None or max_position <= position:
            return FetchDataInfo(metadata, MemoryRecords.EMPTY)
        return FetchDataInfo(
            metadata,
            self.log.slice(position, min(max_position - position, adjusted_max_size)),
            adjusted_max_size < found.size,
        )

    def fetch_upper_bound_offset(self, start: OffsetPosition, fetch_size: int) -> int | None:
        found = self._offset_index.get().fetch_upper_bound_offset(start, fetch_size)
        return None if found is None else found.offset

    def read_next_offset(self) -> int:
        """The offset after the last record; the base offset if there is none."""
        found = self.translate_offset(self._offset_index.get().last_offset)
        next_offset = self.base_offset
        if found is not None:
            for batch in self.log.batches(found.position):
                next_offset = batch.next_offset
        return next_offset

    def find_offset_by_timestamp(
        self, timestamp: int, starting_offset: int
    ) -> TimestampAndOffset | None:
        """The first record at or after `starting_offset` that is not older than `timestamp`."""
        entry = self.time_index.lookup(timestamp)
        position = self.offset_index.lookup(max(entry.offset, starting_offset)).position
        return self.log.search_for_timestamp(timestamp, position, starting_offset)

    def update_txn_index(self, completed: CompletedTxn, last_stable_offset: int) -> None:
        if completed.is_aborted:
            self.transaction_index.append(
                AbortedTxn(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    last_stable_offset,
                )
            )

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult:
        return self.transaction_index.collect_aborted_txns(fetch_offset, upper_bound_offset)

    def recover(
        self,
        producer_state_manager: ProducerStateManager,
        leader_epoch_cache: LeaderEpochFileCache | None = None,
        *,
        next_base_offset: int | None = None,
        may_have_gaps: bool = True,
        before_cut: Callable[[], None] | None = None,
    ) -> int:
        """Reads every batch, builds the indexes anew and cuts the file at the first batch that is
        not whole; returns how many bytes went.

        A batch's checksum does not cover its offset, so `next_base_offset` (where the segment after
        this one begins) and `may_have_gaps` (a compacted topic) help to tell a wrong one. If
        something is to be cut, `before_cut` is called first.
        """
        self.offset_index.reset()
        self.time_index.reset()
        self.transaction_index.reset()
        valid_bytes = 0
        last_index_entry = 0
        largest = TimestampOffset(-1, self.base_offset)
        try:
            for batch in in_offset_order(
                self.log.batches(),
                self.base_offset,
                next_base_offset=next_base_offset,
                may_have_gaps=may_have_gaps,
            ):
                batch.ensure_valid()
                if batch.max_timestamp > largest.timestamp:
                    largest = TimestampOffset(batch.max_timestamp, batch.last_offset)
                if valid_bytes - last_index_entry > self._index_interval_bytes:
                    self._add_index_entry(batch.last_offset, valid_bytes, largest)
                    last_index_entry = valid_bytes
                valid_bytes += batch.size_in_bytes
                if batch.magic >= MAGIC_VALUE_V2:
                    if leader_epoch_cache is not None and batch.leader_epoch >= 0:
                        latest = leader_epoch_cache.latest_epoch
                        if latest is None or batch.leader_epoch > latest:
                            leader_epoch_cache.assign(batch.leader_epoch, batch.base_offset)
                    self._update_producer_state(producer_state_manager, batch)
        except (CorruptRecordError, InvalidRecordError) as e:
            logger.warning(
                "Found an invalid batch in %s at byte %d: %s", self.log.path, valid_bytes, e
            )
        truncated = self.log.size_in_bytes - valid_bytes
        if truncated and before_cut is not None:
            before_cut()
        self.log.truncate_to(valid_bytes)
        self._max_timestamp_and_offset = largest
        self._rolling_based_timestamp = None
        self._bytes_since_last_index_entry = valid_bytes - last_index_entry
        self.offset_index.trim_to_valid_size()
        # Always an entry for the last timestamp, as a closed segment has it.
        self.time_index.maybe_append(*largest, skip_full_check=True)
        self.time_index.trim_to_valid_size()
        return truncated

    def truncate_to(self, offset: int) -> int:
        """Removes records at and above an offset; returns how many bytes went."""
        found = self.translate_offset(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        self.offset_index.resize(self.offset_index.max_index_size)
        self.time_index.resize(self.time_index.max_index_size)
        truncated = 0 if found is None else self.log.truncate_to(found.position)
        if self.log.size_in_bytes == 0:
            self._created_ms = self._time.milliseconds()
            self._rolling_based_timestamp = None
        self._bytes_since_last_index_entry = 0
        with self._timestamp_lock:
            self._max_timestamp_and_offset = UNKNOWN_TIMESTAMP_OFFSET
        return truncated

    def on_become_inactive_segment(self) -> None:
        """The segment gets no more records: its files shrink to what they hold."""
        self.time_index.maybe_append(*self.max_timestamp_and_offset_so_far, skip_full_check=True)
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()
        self.log.trim()

    def flush(self) -> None:
        self.log.flush()
        for index in (self._offset_index.loaded, self._time_index.loaded):
            if index is not None:
                index.flush()
        self.transaction_index.flush()

    def update_parent_dir(self, directory: str) -> None:
        """The directory was renamed."""
        self._channel.moved_to(f"{directory}/{os.path.basename(self.log.path)}")
        self._offset_index.update_parent_dir(directory)
        self._time_index.update_parent_dir(directory)
        self.transaction_index.update_parent_dir(directory)

    def change_file_suffixes(self, old: str, new: str) -> None:
        self.log.rename_to(self.log.path.removesuffix(old) + new)
        for index in (self._offset_index, self._time_index, self.transaction_index):
            index.rename_to(index.path.removesuffix(old) + new)

    def close(self) -> None:
        """Trims the files to what they hold and lets go of them."""
        if self._max_timestamp_and_offset is not UNKNOWN_TIMESTAMP_OFFSET:
            self.time_index.maybe_append(*self._max_timestamp_and_offset, skip_full_check=True)
        self._offset_index.close()
        self._time_index.close()
        self.log.close()

    def close_handlers(self) -> None:
        """Lets go of the files without writing: their directory has failed."""
        self._offset_index.close_handler()
        self._time_index.close_handler()
        # The records' own file closes with the last slice of it: a socket may be sending one.

    def delete_if_exists(self) -> None:
        """The records stay readable to whoever still holds a slice of them."""
        self._file_system.unlink_if_exists(self.log.path)
        self._offset_index.delete_if_exists()
        self._time_index.delete_if_exists()
        self.transaction_index.delete_if_exists()

    def __repr__(self) -> str:
        return f"LogSegment(base_offset={self.base_offset}, size={self.size})"

    def _add_index_entry(self, offset: int, position: int, largest: TimestampOffset) -> None:
        """None if there is no room, as when the indexes of a large segment are built anew and have
        been made smaller, or denser, in the meantime: lookups then read on from the last entry."""
        offset_index, time_index = self._offset_index.get(), self._time_index.get()
        if not (offset_index.is_full or time_index.is_full):
            offset_index.append(offset, position)
            time_index.maybe_append(*largest)

    def _update_producer_state(
        self, producer_state_manager: ProducerStateManager, batch: RecordBatch
    ) -> None:
        if batch.has_producer_id:
            append_info = producer_state_manager.prepare_update(
                batch.producer_id, AppendOrigin.REPLICATION
            )
            completed = append_info.append(batch)
            producer_state_manager.update(append_info)
            if completed is not None:
                self.update_txn_index(
                    completed, producer_state_manager.last_stable_offset(completed)
                )
                producer_state_manager.complete_txn(completed)
        producer_state_manager.update_map_end_offset(batch.last_offset + 1)

    def _load_first_batch_timestamp(self) -> None:
        if self._rolling_based_timestamp is None:
            first = next(iter(self.log.batches()), None)
            if first is not None:
                self._rolling_based_timestamp = first.max_timestamp

    def _read_largest_timestamp(self) -> TimestampOffset:
        last = self.time_index.last_entry
        position = self.offset_index.lookup(last.offset).position
        after = self.log.largest_timestamp_after(position)
        if after.timestamp > last.timestamp:
            return TimestampOffset(after.timestamp, after.offset)
        return TimestampOffset(*last)
