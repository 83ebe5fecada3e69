"""The transactions whose partition of __transaction_state this broker leads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from kafkapy.common.errors import Errors
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Histogram
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord
from kafkapy.common.types import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.transaction import transaction_log
from kafkapy.coordinator.transaction.transaction_coordinator_config import (
    TransactionCoordinatorConfig,
)
from kafkapy.coordinator.transaction.transaction_expiration import TransactionExpiration
from kafkapy.coordinator.transaction.transaction_log_reader import TransactionLogReader
from kafkapy.coordinator.transaction.transaction_metadata import (
    TransactionMetadata,
    TxnTransitMetadata,
)
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.replication.partition_response import PartitionResponse
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.utils.java_hash import java_partition_for
from kafkapy.utils.locks import ReentrantReadWriteLock
from kafkapy.utils.scheduler import Scheduler
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

PARTITION_LOAD_TIME_MS = Histogram(
    "kafka.server:type=transaction-coordinator-metrics,name=partition-load-time",
    "How long it took to load a partition of __transaction_state, in milliseconds.",
)

ENFORCED_REQUIRED_ACKS = -1

AppendCallback = Callable[[Errors], None]
SendTxnMarkers = Callable[[int, TransactionResult, TransactionMetadata, TxnTransitMetadata], None]


@dataclass(frozen=True, slots=True)
class CoordinatorEpochAndTxnMetadata:
    """Ports: kafka.coordinator.transaction.CoordinatorEpochAndTxnMetadata"""

    coordinator_epoch: int
    transaction_metadata: TransactionMetadata


class TransactionalIdAndProducerId(NamedTuple):
    """Ports: kafka.coordinator.transaction.TransactionalIdAndProducerIdEpoch"""

    transactional_id: str
    producer_id: int


class _Loading(NamedTuple):
    partition: int
    coordinator_epoch: int


class _CacheEntry(NamedTuple):
    coordinator_epoch: int
    transactions: dict[str, TransactionMetadata]


class TransactionStateManager:
    """Keeps transactions in memory as __transaction_state has them. Thread-safe.

    The state lock guards which partitions are here; it is held for reading from the look at the
    coordinator epoch until a record is appended, so that no record of an earlier term comes after
    one of a later. Each transaction has a lock of its own, taken after the state lock.

    Ports: kafka.coordinator.transaction.TransactionStateManager
    """

    def __init__(
        self,
        config: TransactionCoordinatorConfig,
        *,
        replica_manager: ReplicaManager,
        scheduler: Scheduler,
        time: Time,
        metrics: MetricsRegistry,
        request_timeout_ms: int,
    ) -> None:
        # constant after construction
        self._config = config
        self._replica_manager = replica_manager
        self._scheduler = scheduler
        self._time = time
        self._load_time_ms = metrics.histogram(PARTITION_LOAD_TIME_MS)
        self._shutting_down = threading.Event()
        self._reader = TransactionLogReader(
            replica_manager, buffer_size=config.transaction_log_load_buffer_size
        )
        self._expiration = TransactionExpiration(
            self, config, replica_manager, time, request_timeout_ms=request_timeout_ms
        )
        # set by startup
        self._partition_count = config.transaction_topic_num_partitions
        self.state_lock = ReentrantReadWriteLock()
        # changed under state_lock.write()
        self._loading: set[_Loading] = set()
        self._cache: dict[int, _CacheEntry] = {}
        # Transactions join an entry under state_lock.read() and this.
        self._creation_lock = threading.Lock()

    def startup(
        self,
        retrieve_partition_count: Callable[[], int | None],
        *,
        enable_transactional_id_expiration: bool = True,
    ) -> None:
        """`retrieve_partition_count` tells of the topic as it is, None if there is none yet."""
        self._partition_count = (
            retrieve_partition_count() or self._config.transaction_topic_num_partitions
        )
        if enable_transactional_id_expiration:
            interval_ms = self._config.remove_expired_transactional_ids_interval_ms
            self._scheduler.schedule(
                "transactionalId-expiration",
                self._expiration.remove_expired_transactional_ids,
                delay_ms=interval_ms,
                period_ms=interval_ms,
            )

    def shutdown(self) -> None:
        self._shutting_down.set()
        with self.state_lock.write():
            self._loading.clear()
            self._cache.clear()

    # --- transactions

    def partition_for(self, transactional_id: str) -> int:
        return java_partition_for(transactional_id, self._partition_count)

    def validate_transaction_timeout_ms(self, txn_timeout_ms: int) -> bool:
        return 0 < txn_timeout_ms <= self._config.transaction_max_timeout_ms

    def get_transaction_state(
        self, transactional_id: str
    ) -> CoordinatorEpochAndTxnMetadata | Errors | None:
        """COORDINATOR_LOAD_IN_PROGRESS or NOT_COORDINATOR if this broker cannot know."""
        with self.state_lock.read():
            entry = self._entry_locked(transactional_id)
            if isinstance(entry, Errors):
                return entry
            metadata = entry.transactions.get(transactional_id)
            if metadata is None:
                return None
            return CoordinatorEpochAndTxnMetadata(entry.coordinator_epoch, metadata)

    def existing_transaction_state(
        self, transactional_id: str | None
    ) -> CoordinatorEpochAndTxnMetadata | Errors:
        """For requests that only make sense after InitProducerId."""
        if not transactional_id:
            return Errors.INVALID_REQUEST
        found = self.get_transaction_state(transactional_id)
        return Errors.INVALID_PRODUCER_ID_MAPPING if found is None else found

    def put_transaction_state_if_not_exists(
        self, created: TransactionMetadata
    ) -> CoordinatorEpochAndTxnMetadata | Errors:
        with self.state_lock.read():
            entry = self._entry_locked(created.transactional_id)
            if isinstance(entry, Errors):
                return entry
            with self._creation_lock:
                metadata = entry.transactions.setdefault(created.transactional_id, created)
            return CoordinatorEpochAndTxnMetadata(entry.coordinator_epoch, metadata)

    def _entry_locked(self, transactional_id: str) -> _CacheEntry | Errors:
        partition = self.partition_for(transactional_id)
        if any(loading.partition == partition for loading in self._loading):
            return Errors.COORDINATOR_LOAD_IN_PROGRESS
        return self._cache.get(partition) or Errors.NOT_COORDINATOR

    def is_loading(self) -> bool:
        with self.state_lock.read():
            return bool(self._loading)

    def partitions(self) -> list[int]:
        """Those loaded."""
        with self.state_lock.read():
            return list(self._cache)

    def transactions_of(self, partition: int) -> tuple[int, list[TransactionMetadata]] | None:
        """The coordinator epoch and the transactions of a partition, if it is loaded."""
        with self.state_lock.read():
            entry = self._cache.get(partition)
            if entry is None:
                return None
            with self._creation_lock:
                return entry.coordinator_epoch, list(entry.transactions.values())

    def all_transactions(self) -> list[TransactionMetadata]:
        with self.state_lock.read(), self._creation_lock:
            return [
                metadata
                for entry in self._cache.values()
                for metadata in entry.transactions.values()
            ]

    def remove_transaction(self, partition: int, metadata: TransactionMetadata) -> None:
        """Forgets one that has expired."""
        with self.state_lock.read(), self._creation_lock:
            entry = self._cache.get(partition)
            if entry is not None and entry.transactions.get(metadata.transactional_id) is metadata:
                del entry.transactions[metadata.transactional_id]

    def timed_out_transactions(self) -> list[TransactionalIdAndProducerId]:
        now_ms = self._time.milliseconds()
        timed_out = []
        for metadata in self.all_transactions():
            with metadata.lock:
                if (
                    metadata.pending_state is None
                    and metadata.state is TransactionState.ONGOING
                    and metadata.txn_start_timestamp + metadata.txn_timeout_ms < now_ms
                ):
                    timed_out.append(
                        TransactionalIdAndProducerId(
                            metadata.transactional_id, metadata.producer_id
                        )
                    )
        return timed_out

    def list_transaction_states(
        self,
        *,
        producer_ids: Collection[int] = (),
        states: Collection[TransactionState] | None = None,
        min_duration_ms: int = -1,
    ) -> list[tuple[str, int, TransactionState]]:
        """Transactional ids with their producer ids and states; `states` None is any."""
        now_ms = self._time.milliseconds()
        found: list[tuple[str, int, TransactionState]] = []
        for metadata in self.all_transactions():
            with metadata.lock:
                if (
                    metadata.state is not TransactionState.DEAD
                    and (not producer_ids or metadata.producer_id in producer_ids)
                    and (states is None or metadata.state in states)
                    and (
                        min_duration_ms < 0
                        or now_ms - metadata.txn_start_timestamp > min_duration_ms
                    )
                ):
                    found.append((metadata.transactional_id, metadata.producer_id, metadata.state))
        return found

    # --- partitions that come and go

    def load_transactions_for_txn_topic_partition(
        self, partition: int, coordinator_epoch: int, send_txn_markers: SendTxnMarkers
    ) -> None:
        """In the background; until it is done, requests are told to wait."""
        loading = _Loading(partition, coordinator_epoch)
        with self.state_lock.write():
            self._loading.add(loading)
        start_ms = self._time.hi_res_clock_ms()

        def load() -> None:
            try:
                self._load(loading, send_txn_markers)
            finally:
                # In each case: what it could not read it would not read the next time either.
                with self.state_lock.write():
                    self._loading.discard(loading)
                self._load_time_ms.update(self._time.hi_res_clock_ms() - start_ms)
                self._replica_manager.try_complete_actions()

        self._scheduler.schedule_once(
            f"load-txns-for-partition-{TRANSACTION_STATE_TOPIC}-{partition}", load
        )

    def _load(self, loading: _Loading, send_txn_markers: SendTxnMarkers) -> None:
        topic_partition = TopicPartition(TRANSACTION_STATE_TOPIC, loading.partition)

        def is_wanted() -> bool:
            with self.state_lock.read():
                return loading in self._loading and not self._shutting_down.is_set()

        loaded = self._reader.load(topic_partition, is_wanted)
        with self.state_lock.write():
            if loading not in self._loading:
                return
            self._cache[loading.partition] = _CacheEntry(loading.coordinator_epoch, loaded)
            self._loading.discard(loading)
            now_ms = self._time.milliseconds()
            for metadata in loaded.values():
                with metadata.lock:
                    match metadata.state:
                        case TransactionState.PREPARE_COMMIT:
                            result = TransactionResult.COMMIT
                        case TransactionState.PREPARE_ABORT:
                            result = TransactionResult.ABORT
                        case _:
                            continue
                    transit = metadata.prepare_complete(now_ms)
                # Still under the lock, so that a resignation takes back what is added here.
                send_txn_markers(loading.coordinator_epoch, result, metadata, transit)
        logger.info(
            "Loaded %d transactions from %s at epoch %d",
            len(loaded),
            topic_partition,
            loading.coordinator_epoch,
        )

    def remove_transactions_for_txn_topic_partition(
        self, partition: int, coordinator_epoch: int | None
    ) -> None:
        """Another broker is the coordinator now; None: whatever the epoch."""
        with self.state_lock.write():
            self._loading = {
                loading
                for loading in self._loading
                if loading.partition != partition
                or coordinator_epoch not in (None, loading.coordinator_epoch)
            }
            removed = self._cache.pop(partition, None)
        if removed is not None:
            logger.info(
                "Unloaded %d transactions of %s-%d",
                len(removed.transactions),
                TRANSACTION_STATE_TOPIC,
                partition,
            )

    # --- the log

    def append_transaction_to_log(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        new_metadata: TxnTransitMetadata,
        response_callback: AppendCallback,
        *,
        retry_on_error: Callable[[Errors], bool] = lambda error: False,
    ) -> None:
        """Writes a prepared change and, once it is committed, completes it.

        On an error the pending state is given up, unless `retry_on_error` keeps it for another try
        with the same change.
        """
        topic_partition = TopicPartition(
            TRANSACTION_STATE_TOPIC, self.partition_for(transactional_id)
        )
        records = MemoryRecords.with_records(
            SimpleRecord(
                self._time.milliseconds(),
                transaction_log.key_to_bytes(transactional_id),
                transaction_log.value_to_bytes(new_metadata),
            )
        )

        def on_appended(responses: dict[TopicPartition, PartitionResponse]) -> None:
            error = coordinator_error(responses[topic_partition].error)
            if error is Errors.NONE:
                error = self._complete_transition(transactional_id, coordinator_epoch, new_metadata)
            else:
                self._on_append_error(
                    transactional_id, coordinator_epoch, keep_pending=retry_on_error(error)
                )
                logger.info(
                    "The change of %s to %s was not written: %s",
                    transactional_id,
                    new_metadata.txn_state.label,
                    error.name,
                )
            response_callback(error)

        with self.state_lock.read():
            found = self.get_transaction_state(transactional_id)
            if isinstance(found, CoordinatorEpochAndTxnMetadata):
                if found.coordinator_epoch == coordinator_epoch:
                    self._replica_manager.append_records(
                        timeout_ms=new_metadata.txn_timeout_ms,
                        required_acks=ENFORCED_REQUIRED_ACKS,
                        internal_topics_allowed=True,
                        origin=AppendOrigin.COORDINATOR,
                        entries_per_partition={topic_partition: records},
                        response_callback=on_appended,
                    )
                    return
                found = Errors.NOT_COORDINATOR
        response_callback(found or Errors.NOT_COORDINATOR)

    def _complete_transition(
        self, transactional_id: str, coordinator_epoch: int, new_metadata: TxnTransitMetadata
    ) -> Errors:
        found = self.get_transaction_state(transactional_id)
        if found is None:
            return Errors.NOT_COORDINATOR
        if isinstance(found, Errors):
            return found
        if found.coordinator_epoch != coordinator_epoch:
            return Errors.NOT_COORDINATOR
        with found.transaction_metadata.lock:
            found.transaction_metadata.complete_transition_to(new_metadata)
        return Errors.NONE

    def _on_append_error(
        self, transactional_id: str, coordinator_epoch: int, *, keep_pending: bool
    ) -> None:
        found = self.get_transaction_state(transactional_id)
        if (
            not keep_pending
            and isinstance(found, CoordinatorEpochAndTxnMetadata)
            and found.coordinator_epoch == coordinator_epoch
        ):
            with found.transaction_metadata.lock:
                found.transaction_metadata.pending_state = None


def coordinator_error(append_error: Errors) -> Errors:
    """What an error of an append to __transaction_state means to a client."""
    match append_error:
        case (
            Errors.UNKNOWN_TOPIC_OR_PARTITION
            | Errors.NOT_ENOUGH_REPLICAS
            | Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            | Errors.REQUEST_TIMED_OUT
        ):
            return Errors.COORDINATOR_NOT_AVAILABLE
        case Errors.NOT_LEADER_OR_FOLLOWER | Errors.KAFKA_STORAGE_ERROR:
            return Errors.NOT_COORDINATOR
        case Errors.MESSAGE_TOO_LARGE | Errors.RECORD_LIST_TOO_LARGE:
            return Errors.UNKNOWN_SERVER_ERROR
        case _:
            return append_error
