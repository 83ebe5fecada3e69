"""The idempotent and transactional producers of one partition."""

import logging
from collections.abc import Iterable, Iterator

from sortedcontainers import SortedDict

from kafkapy.common.record.record_batch import NO_PRODUCER_ID
from kafkapy.common.types import TopicPartition
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.log_file_utils import PRODUCER_SNAPSHOT_FILE_SUFFIX, producer_snapshot_file
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.producer_append_info import ProducerAppendInfo, TxnMetadata
from kafkapy.storage.producer_snapshot_file import ProducerSnapshotFile
from kafkapy.storage.producer_state_entry import ProducerStateEntry
from kafkapy.storage.producer_state_manager_config import ProducerStateManagerConfig
from kafkapy.storage.storage_errors import CorruptSnapshotError
from kafkapy.storage.transaction_index import CompletedTxn
from kafkapy.storage.verification_state_entry import VerificationGuard, VerificationStateEntry

logger = logging.getLogger(__name__)


class ProducerStateManager:
    """Maps producer ids to their last batches, and knows the open transactions. Guarded by the
    log's lock.

    The state up to `map_end_offset` follows from the log alone; snapshots taken when segments roll
    keep a restart from reading all of it. A transaction is unstable until its marker is below the
    high watermark.

    Ports: org.apache.kafka.storage.internals.log.ProducerStateManager
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        *,
        config: ProducerStateManagerConfig,
        file_system: FileSystem,
    ) -> None:
        self.topic_partition = topic_partition  # constant after construction
        self.config = config
        self._file_system = file_system
        self._directory = directory
        self._producers: dict[int, ProducerStateEntry] = {}
        self._verification_states: dict[int, VerificationStateEntry] = {}
        self._ongoing_txns: SortedDict[int, TxnMetadata] = SortedDict()  # by first offset
        self._unreplicated_txns: SortedDict[int, TxnMetadata] = SortedDict()
        self._snapshots = self._load_snapshots()
        self._last_map_offset = 0
        self._last_snap_offset = 0

    @property
    def map_end_offset(self) -> int:
        """The state covers the log up to here."""
        return self._last_map_offset

    @property
    def is_empty(self) -> bool:
        return not self._producers and not self._unreplicated_txns

    @property
    def producer_id_count(self) -> int:
        return len(self._producers)

    @property
    def active_producers(self) -> dict[int, ProducerStateEntry]:
        return self._producers

    @property
    def latest_snapshot_offset(self) -> int | None:
        return self._snapshots.peekitem(-1)[0] if self._snapshots else None

    @property
    def oldest_snapshot_offset(self) -> int | None:
        return self._snapshots.peekitem(0)[0] if self._snapshots else None

    @property
    def first_unstable_offset(self) -> LogOffsetMetadata | None:
        """Where the first transaction begins that is open or not replicated yet."""
        firsts = [
            txns.peekitem(0)[1].first_offset
            for txns in (self._unreplicated_txns, self._ongoing_txns)
            if txns
        ]
        return min(firsts, key=lambda first: first.message_offset, default=None)

    @property
    def has_transactions(self) -> bool:
        return bool(self._ongoing_txns or self._unreplicated_txns)

    def last_entry(self, producer_id: int) -> ProducerStateEntry | None:
        return self._producers.get(producer_id)

    def prepare_update(self, producer_id: int, origin: AppendOrigin) -> ProducerAppendInfo:
        current = self._producers.get(producer_id) or ProducerStateEntry(producer_id)
        return ProducerAppendInfo(
            self.topic_partition, current, origin, self._verification_states.get(producer_id)
        )

    def has_ongoing_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        entry = self._producers.get(producer_id)
        return (
            entry is not None
            and entry.current_txn_first_offset is not None
            and entry.producer_epoch == producer_epoch
        )

    def maybe_start_transaction_verification(
        self, producer_id: int, *, sequence: int, epoch: int, now_ms: int
    ) -> VerificationGuard:
        """The guard to append with once the coordinator has confirmed the partition; the sentinel
        if the transaction is open here already."""
        if self.has_ongoing_transaction(producer_id, epoch):
            return VerificationGuard.SENTINEL
        entry = self._verification_states.get(producer_id)
        if entry is None:
            entry = VerificationStateEntry(now_ms, sequence, epoch)
            self._verification_states[producer_id] = entry
        entry.maybe_update_lowest_sequence_and_epoch(sequence, epoch)
        return entry.guard

    def verification_guard(self, producer_id: int) -> VerificationGuard:
        entry = self._verification_states.get(producer_id)
        return VerificationGuard.SENTINEL if entry is None else entry.guard

    def clear_verification_state(self, producer_id: int) -> None:
        self._verification_states.pop(producer_id, None)

    def is_missing_verification(
        self, producer_id: int, producer_epoch: int, guard: VerificationGuard
    ) -> bool:
        """Whether a transactional append would open a transaction that nobody has confirmed."""
        return (
            self.config.transaction_verification_enabled
            and not self.has_ongoing_transaction(producer_id, producer_epoch)
            and not self.verification_guard(producer_id).verify(guard)
        )

    def update(self, append_info: ProducerAppendInfo) -> None:
        """What `append_info` has collected becomes the state."""
        if append_info.producer_id == NO_PRODUCER_ID:
            raise ValueError(f"{self.topic_partition}: an update without a producer id")
        updated = append_info.updated_entry
        current = self._producers.get(append_info.producer_id)
        if current is None:
            self._producers[append_info.producer_id] = updated
        else:
            current.update(updated)
        for txn in append_info.started_transactions:
            self._ongoing_txns[txn.first_offset.message_offset] = txn

    def update_map_end_offset(self, offset: int) -> None:
        self._last_map_offset = offset

    def complete_txn(self, completed: CompletedTxn) -> None:
        """A marker was appended; the transaction is unstable until that is replicated."""
        txn = self._ongoing_txns.pop(completed.first_offset, None)
        if txn is None:
            raise ValueError(f"{self.topic_partition}: {completed} was not open")
        txn.last_offset = completed.last_offset
        self._unreplicated_txns[completed.first_offset] = txn

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """As it will be once this transaction is complete and replicated."""
        for first_offset, txn in self._ongoing_txns.items():
            if txn.producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        if self._unreplicated_txns:
            self._remove_unreplicated_transactions(high_watermark)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        self._remove_unreplicated_transactions(log_start_offset)
        if self._last_map_offset < log_start_offset:
            self._last_map_offset = log_start_offset
        latest = self.latest_snapshot_offset
        self._last_snap_offset = log_start_offset if latest is None else latest

    def remove_expired_producers(self, now_ms: int) -> None:
        expired = [
            producer_id
            for producer_id, entry in self._producers.items()
            if self._is_expired(now_ms, entry)
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        abandoned = [
            producer_id
            for producer_id, state in self._verification_states.items()
            if now_ms - state.timestamp >= self.config.producer_id_expiration_ms
        ]
        for producer_id in abandoned:
            del self._verification_states[producer_id]

    def truncate_and_reload(
        self, *, log_start_offset: int, log_end_offset: int, now_ms: int
    ) -> None:
        """Goes back to the last snapshot inside the given range."""
        for snapshot in list(self._snapshots.values()):
            if snapshot.offset > log_end_offset or snapshot.offset <= log_start_offset:
                self._remove_and_delete_snapshot(snapshot.offset)
        if log_end_offset != self._last_map_offset:
            self._producers.clear()
            self._ongoing_txns.clear()
            # Truncation is never below the high watermark, but what it leaves is rebuilt anyway.
            self._unreplicated_txns.clear()
            self._load_from_snapshot(log_start_offset, now_ms)
        else:
            self.on_log_start_offset_incremented(log_start_offset)

    def take_over(self, recovered: "ProducerStateManager", log_start_offset: int) -> None:
        """Becomes what another manager of the same log, no longer used, has found in it."""
        self._producers = recovered._producers
        self._ongoing_txns = recovered._ongoing_txns
        self._unreplicated_txns = recovered._unreplicated_txns
        self._last_map_offset = recovered._last_map_offset
        self.on_log_start_offset_incremented(log_start_offset)
        self.take_snapshot()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self._producers.clear()
        self._ongoing_txns.clear()
        self._unreplicated_txns.clear()
        for snapshot_offset in list(self._snapshots):
            self._remove_and_delete_snapshot(snapshot_offset)
        self._last_snap_offset = 0
        self._last_map_offset = offset

    def take_snapshot(self, *, sync: bool = True) -> ProducerSnapshotFile | None:
        """None if the last one is still good."""
        if self._last_map_offset <= self._last_snap_offset:
            return None
        snapshot = ProducerSnapshotFile(
            producer_snapshot_file(self._directory, self._last_map_offset), self._file_system
        )
        snapshot.write(self._producers.values(), sync=sync)
        self._snapshots[snapshot.offset] = snapshot
        self._last_snap_offset = self._last_map_offset
        return snapshot

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Keeps those that belong to a segment, and the last one if it is beyond all segments:
        that one was taken at shutdown."""
        base_offsets = set(segment_base_offsets)
        self._snapshots = self._load_snapshots()
        strays = [offset for offset in self._snapshots if offset not in base_offsets]
        if strays and strays[-1] >= max(base_offsets, default=0):
            strays.pop()
        for offset in strays:
            self._remove_and_delete_snapshot(offset)

    def delete_snapshots_before(self, offset: int) -> None:
        for snapshot_offset in list(
            self._snapshots.irange(maximum=offset, inclusive=(True, False))
        ):
            self._remove_and_delete_snapshot(snapshot_offset)

    def remove_and_mark_snapshot_for_deletion(self, offset: int) -> ProducerSnapshotFile | None:
        """Renames it; whoever asked deletes it later."""
        snapshot = self._snapshots.pop(offset, None)
        if snapshot is not None:
            snapshot.rename_to_deleted()
        return snapshot

    def update_parent_dir(self, directory: str) -> None:
        self._directory = directory
        for snapshot in self._snapshots.values():
            snapshot.update_parent_dir(directory)

    def _load_snapshots(self) -> "SortedDict[int, ProducerSnapshotFile]":
        snapshots = (
            ProducerSnapshotFile(f"{self._directory}/{name}", self._file_system)
            for name in self._snapshot_names()
        )
        return SortedDict((snapshot.offset, snapshot) for snapshot in snapshots)

    def _snapshot_names(self) -> Iterator[str]:
        for name in self._file_system.listdir(self._directory):
            prefix, dot, suffix = name.partition(".")
            if dot + suffix == PRODUCER_SNAPSHOT_FILE_SUFFIX and prefix.isdigit():
                yield name

    def _load_from_snapshot(self, log_start_offset: int, now_ms: int) -> None:
        while self._snapshots:
            offset, snapshot = self._snapshots.peekitem(-1)
            try:
                entries = snapshot.read()
            except CorruptSnapshotError as e:
                logger.warning("%s: %s; it is deleted", self.topic_partition, e)
                self._remove_and_delete_snapshot(offset)
                continue
            for entry in entries:
                if not self._is_expired(now_ms, entry):
                    self._load_entry(entry)
            self._last_snap_offset = self._last_map_offset = offset
            return
        self._last_snap_offset = self._last_map_offset = log_start_offset

    def _load_entry(self, entry: ProducerStateEntry) -> None:
        self._producers[entry.producer_id] = entry
        first_offset = entry.current_txn_first_offset
        if first_offset is not None:
            self._ongoing_txns[first_offset] = TxnMetadata(
                entry.producer_id, LogOffsetMetadata(first_offset)
            )

    def _is_expired(self, now_ms: int, entry: ProducerStateEntry) -> bool:
        return (
            entry.current_txn_first_offset is None
            and now_ms - entry.last_timestamp >= self.config.producer_id_expiration_ms
        )

    def _remove_unreplicated_transactions(self, offset: int) -> None:
        replicated = [
            first_offset
            for first_offset, txn in self._unreplicated_txns.items()
            if txn.last_offset is not None and txn.last_offset < offset
        ]
        for first_offset in replicated:
            del self._unreplicated_txns[first_offset]

    def _remove_and_delete_snapshot(self, offset: int) -> None:
        snapshot = self._snapshots.pop(offset, None)
        if snapshot is not None:
            snapshot.delete_if_exists()
