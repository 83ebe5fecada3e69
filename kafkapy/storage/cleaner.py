"""Compacting one log."""

import logging
from collections.abc import Callable, Iterator

from kafkapy.common.errors import CorruptRecordError
from kafkapy.common.record.default_record import slice_records
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record_batch import HEADER_SIZE_UP_TO_MAGIC, MutableRecordBatch
from kafkapy.common.record.record_filter import (
    BatchRetention,
    BatchRetentionResult,
    RecordFilter,
)
from kafkapy.common.types import TopicPartition
from kafkapy.storage.abstract_index import INT_MAX
from kafkapy.storage.cleaned_transaction_metadata import CleanedTransactionMetadata
from kafkapy.storage.cleaner_stats import CleanerStats
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_to_clean import LogToClean
from kafkapy.storage.producer_state_entry import LastRecord
from kafkapy.storage.skimpy_offset_map import SkimpyOffsetMap
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.utils.cpu_pacer import CpuPacer
from kafkapy.utils.throttler import Throttler
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

# Raises LogCleaningAbortedError or CleanerShutdownError if the work on a partition must end.
CheckDone = Callable[[TopicPartition], None]


class Cleaner:
    """Rewrites the segments of a log so that only the last record of each key stays. Used by one
    thread; the log goes on being read and written meanwhile.

    First the keys of the dirty part are read, with the last offset of each; then all segments up to
    there are copied without the records that a later one of the same key has made obsolete, several
    small ones into one. A copy takes the place of its segments at once.

    Ports: kafka.log.Cleaner
    """

    def __init__(
        self,
        offset_map: SkimpyOffsetMap,
        *,
        io_buffer_size: int,
        dup_buffer_load_factor: float,
        throttler: Throttler,
        pacer: CpuPacer,
        time: Time,
        check_done: CheckDone,
    ) -> None:
        # constant after construction
        self._offset_map = offset_map
        self._io_buffer_size = io_buffer_size
        self._max_map_entries = int(offset_map.slots * dup_buffer_load_factor)
        self._throttler = throttler
        self._pacer = pacer
        self._time = time
        self._check_done = check_done

    def clean(self, cleanable: LogToClean) -> tuple[int, CleanerStats]:
        """Returns the offset from which on the log is still dirty.

        Raises CorruptRecordError or InvalidRecordError for a log that cannot be read; what was
        replaced until then stays so.
        """
        try:
            return self._clean(cleanable, self._time.milliseconds())
        finally:
            self._offset_map.close()

    def _clean(self, cleanable: LogToClean, now_ms: int) -> tuple[int, CleanerStats]:
        log = cleanable.log
        stats = CleanerStats(self._time)
        upper_bound = cleanable.first_uncleanable_offset
        # Only records older than magic 2 need it: newer batches carry their own horizon.
        clean_segments = log.segments_between(0, cleanable.first_dirty_offset)
        legacy_delete_horizon_ms = (
            clean_segments[-1].last_modified_ms - log.config.delete_retention_ms
            if clean_segments
            else 0
        )
        self._build_offset_map(log, cleanable.first_dirty_offset, upper_bound, stats)
        end_offset = self._offset_map.latest_offset + 1
        stats.index_done()
        transactions = CleanedTransactionMetadata()
        for group in group_segments_by_size(
            log.segments_between(0, end_offset),
            max_size=log.config.segment_bytes,
            max_index_size=log.config.segment_index_bytes,
            first_uncleanable_offset=upper_bound,
        ):
            self._clean_segments(
                log,
                group,
                transactions,
                stats,
                now_ms=now_ms,
                legacy_delete_horizon_ms=legacy_delete_horizon_ms,
            )
        stats.buffer_utilization = self._offset_map.utilization
        stats.all_done()
        return end_offset, stats

    # --- the keys of the dirty part

    def _build_offset_map(
        self, log: UnifiedLog, start_offset: int, end_offset: int, stats: CleanerStats
    ) -> None:
        """As many whole batches as the map has room for; its latest offset says how many."""
        offset_map = self._offset_map
        offset_map.clear(min(end_offset - start_offset, self._max_map_entries))
        offset_map.update_latest_offset(start_offset - 1)
        dirty = log.segments_between(start_offset, end_offset)
        transactions = CleanedTransactionMetadata()
        transactions.add_aborted_transactions(
            log.collect_aborted_transactions(start_offset, end_offset)
        )
        for segment, following in zip(dirty, (*dirty[1:], None), strict=True):
            for batch in self._batches(log.topic_partition, segment, start_offset):
                if not self._add_batch(batch, start_offset, transactions, stats):
                    return
            # There may be a gap at the end of the segment.
            next_start = end_offset if following is None else following.base_offset
            offset_map.update_latest_offset(next_start - 1)

    def _add_batch(
        self,
        batch: MutableRecordBatch,
        start_offset: int,
        transactions: CleanedTransactionMetadata,
        stats: CleanerStats,
    ) -> bool:
        """False if the map got full: the rest of the batch is for the next time."""
        offset_map = self._offset_map
        stats.map_bytes_read += batch.size_in_bytes
        if batch.is_control_batch:
            transactions.on_control_batch_read(batch)
            stats.map_messages_read += 1
        elif transactions.on_batch_read(batch):
            stats.map_messages_read += batch.count or 0
        else:
            for offset, key in _keys(batch):
                if key is not None and offset >= start_offset:
                    if len(offset_map) >= self._max_map_entries:
                        return False
                    offset_map.put(key, offset)
                stats.map_messages_read += 1
                self._pacer.step()
        if batch.last_offset >= start_offset:
            offset_map.update_latest_offset(batch.last_offset)
        return True

    # --- the copy

    def _clean_segments(
        self,
        log: UnifiedLog,
        segments: tuple[LogSegment, ...],
        transactions: CleanedTransactionMetadata,
        stats: CleanerStats,
        *,
        now_ms: int,
        legacy_delete_horizon_ms: int,
    ) -> None:
        """Copies a group of segments into one and puts it in their place."""
        cleaned = log.new_cleaned_segment(segments[0].base_offset)
        try:
            transactions.cleaned_index = cleaned.transaction_index
            last_records = log.last_records_of_active_producers()
            for segment, following in zip(segments, (*segments[1:], None), strict=True):
                end = segment.read_next_offset() if following is None else following.base_offset
                transactions.add_aborted_transactions(
                    log.collect_aborted_transactions(segment.base_offset, end)
                )
                record_filter = _CompactionFilter(
                    self._offset_map,
                    transactions,
                    last_records,
                    stats,
                    self._pacer,
                    now_ms=now_ms,
                    delete_retention_ms=log.config.delete_retention_ms,
                    retain_legacy_deletes=segment.last_modified_ms > legacy_delete_horizon_ms,
                )
                self._clean_into(log.topic_partition, segment, cleaned, record_filter, stats)
            cleaned.on_become_inactive_segment()
            cleaned.flush()
            # By which a segment without timestamps is judged.
            cleaned.last_modified_ms = segments[-1].last_modified_ms
        except BaseException:
            cleaned.delete_if_exists()
            raise
        logger.info(
            "%s: %d segments from %d on are now one of %d bytes",
            log.topic_partition,
            len(segments),
            cleaned.base_offset,
            cleaned.size,
        )
        log.replace_segments((cleaned,), segments)

    def _clean_into(
        self,
        topic_partition: TopicPartition,
        source: LogSegment,
        dest: LogSegment,
        record_filter: RecordFilter,
        stats: CleanerStats,
    ) -> None:
        for batch in self._batches(topic_partition, source, source.base_offset):
            filtered = record_filter.filter_batch(batch)
            stats.bytes_read += batch.size_in_bytes
            stats.messages_read += filtered.messages_read
            stats.messages_written += filtered.messages_retained
            if filtered.records is None:
                continue
            # No lock: nobody else knows this segment yet.
            dest.append(
                filtered.last_offset,
                largest_timestamp=filtered.max_timestamp,
                shallow_offset_of_max_timestamp=filtered.last_offset,
                records=filtered.records,
            )
            size = filtered.records.size_in_bytes
            stats.bytes_written += size
            self._throttle(topic_partition, size)

    def _batches(
        self, topic_partition: TopicPartition, segment: LogSegment, start_offset: int
    ) -> Iterator[MutableRecordBatch]:
        """The batches of a segment, from the one with an offset on; each has a right checksum."""
        position = segment.offset_index.lookup(start_offset).position
        for records in read_chunks(segment.log, position, self._io_buffer_size):
            self._check_done(topic_partition)
            self._throttle(topic_partition, records.size_in_bytes)
            for batch in records.batches():
                # What is written anew gets a new checksum, and damage would no longer show.
                batch.ensure_valid()
                yield batch
                self._pacer.step()

    def _throttle(self, topic_partition: TopicPartition, size: int) -> None:
        self._throttler.maybe_throttle(size, check=lambda: self._check_done(topic_partition))


class _CompactionFilter(RecordFilter):
    """Keeps the last record of each key, and what producers and transactions need.

    Ports: kafka.log.Cleaner.cleanInto
    """

    def __init__(
        self,
        offset_map: SkimpyOffsetMap,
        transactions: CleanedTransactionMetadata,
        last_records: dict[int, LastRecord],
        stats: CleanerStats,
        pacer: CpuPacer,
        *,
        now_ms: int,
        delete_retention_ms: int,
        retain_legacy_deletes: bool,
    ) -> None:
        super().__init__(now_ms, delete_retention_ms)
        self._offset_map = offset_map
        self._transactions = transactions
        self._last_records = last_records
        self._stats = stats
        self._pacer = pacer
        self._retain_legacy_deletes = retain_legacy_deletes
        # Of the batch that was asked about last.
        self._discard_records = False
        self._retain_deletes = True

    def check_batch_retention(self, batch: MutableRecordBatch) -> BatchRetentionResult:
        horizon_ms = batch.delete_horizon_ms if isinstance(batch, DefaultRecordBatch) else None
        is_beyond_horizon = horizon_ms is not None and horizon_ms <= self.current_time_ms
        if isinstance(batch, DefaultRecordBatch):
            self._retain_deletes = not is_beyond_horizon
        else:
            self._retain_deletes = self._retain_legacy_deletes
        if batch.is_control_batch:
            # A marker goes like a tombstone: some time after the last record that needs it.
            can_discard = self._transactions.on_control_batch_read(batch)
            self._discard_records = can_discard and is_beyond_horizon
        else:
            can_discard = self._discard_records = self._transactions.on_batch_read(batch)
        if batch.has_producer_id and self._is_last_of_producer(batch):
            retention = BatchRetention.RETAIN_EMPTY
        elif self._discard_records:
            retention = BatchRetention.DELETE
        else:
            retention = BatchRetention.DELETE_EMPTY
        return BatchRetentionResult(retention, can_discard and batch.is_control_batch)

    def should_retain_record(
        self, batch: MutableRecordBatch, offset: int, key: bytes | None, *, has_value: bool
    ) -> bool:
        self._pacer.step()
        if self._discard_records:
            return False
        if batch.is_control_batch or offset > self._offset_map.latest_offset:
            return True
        if key is None:
            self._stats.invalid_messages_read += 1
            return False
        return (has_value or self._retain_deletes) and offset >= self._offset_map.get(key)

    def _is_last_of_producer(self, batch: MutableRecordBatch) -> bool:
        """Whether a producer that may still write goes on from this batch's sequence number, or
        is fenced by this marker's epoch."""
        last = self._last_records.get(batch.producer_id)
        if last is None:
            return False
        if last.last_data_offset is not None:
            return batch.last_offset == last.last_data_offset
        return batch.is_control_batch and batch.producer_epoch == last.producer_epoch


def group_segments_by_size(
    segments: tuple[LogSegment, ...],
    *,
    max_size: int,
    max_index_size: int,
    first_uncleanable_offset: int,
) -> list[tuple[LogSegment, ...]]:
    """Neighbours that fit into one segment together: by their bytes, their indexes and the range
    of their offsets.

    Ports: kafka.log.Cleaner.groupSegmentsBySize
    """
    groups: list[list[LogSegment]] = []
    log_size = index_size = time_index_size = 0
    ends = (*(segment.base_offset for segment in segments[1:]), first_uncleanable_offset)
    for segment, end in zip(segments, ends, strict=True):
        offset_index_bytes = segment.offset_index.size_in_bytes
        time_index_bytes = segment.time_index.size_in_bytes
        log_size += segment.size
        index_size += offset_index_bytes
        time_index_size += time_index_bytes
        if (
            groups
            and log_size <= max_size
            and index_size <= max_index_size
            and time_index_size <= max_index_size
            # An empty segment has no offset that could be too far away.
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= INT_MAX)
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            log_size = segment.size
            index_size = offset_index_bytes
            time_index_size = time_index_bytes
    return [tuple(group) for group in groups]


def read_chunks(log: FileRecords, position: int, chunk_size: int) -> Iterator[MemoryRecords]:
    """The records of a file in pieces of whole batches; a batch larger than that comes alone.

    Raises CorruptRecordError if the file ends inside a batch.
    """
    end = log.size_in_bytes
    chunk_size = max(chunk_size, HEADER_SIZE_UP_TO_MAGIC)
    while position < end:
        records = MemoryRecords(log.read(position, chunk_size))
        if records.valid_bytes == 0:
            size = records.first_batch_size()
            if size is None or size > end - position:
                raise CorruptRecordError(
                    f"{log.path} ends inside the batch at position {position}: it has {end} bytes"
                )
            records = MemoryRecords(log.read(position, size))
        yield records
        position += records.valid_bytes


def _keys(batch: MutableRecordBatch) -> Iterator[tuple[int, bytes | None]]:
    """The offset and key of each record."""
    if isinstance(batch, DefaultRecordBatch):
        base_offset = batch.base_offset
        for sliced in slice_records(batch.record_input(), batch.count or 0):
            yield base_offset + sliced.offset_delta, sliced.key
    else:
        for record in batch.records():
            yield record.offset, record.key
