"""Producer state from the log itself, where snapshots do not reach."""

import logging

from kafkapy.common.errors import InvalidTxnStateError
from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record_batch import RecordBatch
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_append_info import ProducerAppendInfo
from kafkapy.storage.producer_state_entry import BatchMetadata
from kafkapy.storage.producer_state_manager import ProducerStateManager
from kafkapy.storage.transaction_index import CompletedTxn
from kafkapy.storage.verification_state_entry import VerificationGuard
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

_INT_MAX = (1 << 31) - 1


def rebuild_producer_state(
    producer_state_manager: ProducerStateManager,
    segments: LogSegments,
    *,
    log_start_offset: int,
    last_offset: int,
    time: Time,
    reload_from_clean_shutdown: bool,
) -> None:
    """Brings the state to `last_offset`: from the last snapshot, then through the records.

    Snapshots are taken at the last two segments and at the end, so that the next time is cheap.

    Ports: kafka.log.UnifiedLog.rebuildProducerState
    """
    offsets_to_snapshot = {last_offset}
    last_segment = segments.last_segment
    if last_segment is not None:
        offsets_to_snapshot.add(last_segment.base_offset)
        lower = segments.lower_segment(last_segment.base_offset)
        if lower is not None:
            offsets_to_snapshot.add(lower.base_offset)
    manager = producer_state_manager
    if manager.latest_snapshot_offset is None and reload_from_clean_shutdown:
        # A clean shutdown without a snapshot: the log was written by a broker that knew no
        # producer ids, so there is nothing to find by reading all of it.
        for offset in sorted(offsets_to_snapshot):
            manager.update_map_end_offset(offset)
            manager.take_snapshot()
        return
    # Truncation cannot bring producers back, so an empty state that was complete stays empty.
    was_empty = manager.is_empty and manager.map_end_offset >= last_offset
    manager.truncate_and_reload(
        log_start_offset=log_start_offset,
        log_end_offset=last_offset,
        now_ms=time.milliseconds(),
    )
    if last_offset > manager.map_end_offset and not was_empty:
        logger.info(
            "%s: reading producer state from offset %d to %d",
            manager.topic_partition,
            manager.map_end_offset,
            last_offset,
        )
        segment_of_last_offset = segments.floor_segment(last_offset)
        for segment in segments.values_between(manager.map_end_offset, last_offset):
            start_offset = max(segment.base_offset, manager.map_end_offset, log_start_offset)
            manager.update_map_end_offset(start_offset)
            if segment.base_offset in offsets_to_snapshot:
                manager.take_snapshot()
            max_position = segment.size
            if segment is segment_of_last_offset:
                found = segment.translate_offset(last_offset)
                if found is not None:
                    max_position = found.position
            info = segment.read(start_offset, _INT_MAX, max_position=max_position)
            if info is not None:
                _load_producers_from_records(manager, info.records)
    manager.update_map_end_offset(last_offset)
    manager.take_snapshot()


class ProducerChanges:
    """What records change of the producers' state, collected first and applied at once.

    Guarded by the log's lock.

    Ports: kafka.log.UnifiedLog.analyzeAndValidateProducerState
    """

    __slots__ = ("_completed_txns", "_producers", "_transactional")

    def __init__(self) -> None:
        self._producers: dict[int, ProducerAppendInfo] = {}
        self._completed_txns: list[CompletedTxn] = []
        self._transactional: set[int] = set()  # producers

    def analyze(
        self,
        manager: ProducerStateManager,
        records: MemoryRecords,
        origin: AppendOrigin,
        segment: LogSegment,
        verification_guard: VerificationGuard = VerificationGuard.SENTINEL,
    ) -> BatchMetadata | None:
        """Validates records about to be appended to a segment; returns the batch that they repeat,
        if they do.

        Raises InvalidTxnStateError for transactional records outside an open transaction, unless
        the guard proves that the coordinator knows of it: without that the transaction might never
        end and hold back readers of committed data for good.
        """
        position = segment.size
        for batch in records.batches():
            if batch.has_producer_id:
                if origin is AppendOrigin.CLIENT:
                    entry = manager.last_entry(batch.producer_id)
                    duplicate = None if entry is None else entry.find_duplicate_batch(batch)
                    if duplicate is not None:
                        return duplicate
                if (
                    batch.is_transactional
                    and not batch.is_control_batch
                    and origin is not AppendOrigin.REPLICATION
                    and manager.is_missing_verification(
                        batch.producer_id, batch.producer_epoch, verification_guard
                    )
                ):
                    raise InvalidTxnStateError(
                        f"{manager.topic_partition}: a batch of producer {batch.producer_id} is "
                        "not part of an ongoing transaction"
                    )
                # Known here, it need not be looked up when the last stable offset is asked for.
                first_offset = (
                    LogOffsetMetadata(batch.base_offset, segment.base_offset, position)
                    if batch.is_transactional
                    else None
                )
                self.add(manager, batch, origin, first_offset)
            position += batch.size_in_bytes
        return None

    def add(
        self,
        manager: ProducerStateManager,
        batch: RecordBatch,
        origin: AppendOrigin,
        first_offset: LogOffsetMetadata | None = None,
    ) -> None:
        append_info = self._producers.get(batch.producer_id)
        if append_info is None:
            append_info = manager.prepare_update(batch.producer_id, origin)
            self._producers[batch.producer_id] = append_info
        if batch.is_transactional:
            self._transactional.add(batch.producer_id)
        completed = append_info.append(batch, first_offset)
        if completed is not None:
            self._completed_txns.append(completed)

    def apply(self, manager: ProducerStateManager, segment: LogSegment | None = None) -> None:
        """The records are in the log; with `segment`, its transaction index learns of aborts."""
        for append_info in self._producers.values():
            manager.update(append_info)
        for producer_id in self._transactional:
            # Either the transaction is open now, which is proof enough, or it has ended.
            manager.clear_verification_state(producer_id)
        for completed in self._completed_txns:
            if segment is not None:
                segment.update_txn_index(completed, manager.last_stable_offset(completed))
            manager.complete_txn(completed)


def _load_producers_from_records(
    manager: ProducerStateManager, records: FileRecords | MemoryRecords
) -> None:
    changes = ProducerChanges()
    for batch in records.batches():
        if batch.has_producer_id:
            changes.add(manager, batch, AppendOrigin.REPLICATION)
    changes.apply(manager)
