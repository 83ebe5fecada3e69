"""The coordinator of transactions."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

from kafkapy.common.errors import Errors, KafkaError, ProducerFencedError
from kafkapy.common.record.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.producer_id_manager import ProducerIdManager
from kafkapy.coordinator.transaction.transaction_coordinator_config import (
    TransactionCoordinatorConfig,
)
from kafkapy.coordinator.transaction.transaction_end import TransactionEnd
from kafkapy.coordinator.transaction.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
)
from kafkapy.coordinator.transaction.transaction_metadata import (
    IllegalTransitionError,
    TransactionMetadata,
    TxnTransitMetadata,
    is_epoch_exhausted,
)
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.coordinator.transaction.transaction_state_manager import (
    AppendCallback,
    TransactionStateManager,
)
from kafkapy.utils.scheduler import Scheduler
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProducerIdAndEpoch:
    """Ports: org.apache.kafka.common.utils.ProducerIdAndEpoch"""

    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class InitProducerIdResult:
    """Ports: kafka.coordinator.transaction.InitProducerIdResult"""

    error: Errors = Errors.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """One transactional id as DescribeTransactions shows it."""

    error: Errors
    state: TransactionState = TransactionState.EMPTY
    timeout_ms: int = 0
    start_timestamp: int = -1
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    topic_partitions: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """Transactional ids, their producer ids and states; filters that name no state."""

    error: Errors = Errors.NONE
    transactions: tuple[tuple[str, int, TransactionState], ...] = ()
    unknown_states: tuple[str, ...] = ()


InitProducerIdCallback = Callable[[InitProducerIdResult], None]


class TransactionCoordinator:
    """Gives producers their ids and epochs and leads their transactions from state to state.

    Thread-safe. A request changes nothing before the change is in __transaction_state; its
    callback runs on whichever thread finishes that, with no transaction's lock held.

    Ports: kafka.coordinator.transaction.TransactionCoordinator
    """

    def __init__(
        self,
        config: TransactionCoordinatorConfig,
        *,
        scheduler: Scheduler,
        producer_id_manager: ProducerIdManager,
        state_manager: TransactionStateManager,
        marker_channel_manager: TransactionMarkerChannelManager,
        time: Time,
        try_complete_actions: Callable[[], None],
    ) -> None:
        # constant after construction
        self._config = config
        self._scheduler = scheduler
        self._producer_id_manager = producer_id_manager
        self._state_manager = state_manager
        self._marker_channel_manager = marker_channel_manager
        self._time = time
        self._try_complete_actions = try_complete_actions
        self._end = TransactionEnd(state_manager, marker_channel_manager, time)
        self._is_active = threading.Event()

    def startup(
        self,
        retrieve_partition_count: Callable[[], int | None],
        *,
        enable_transactional_id_expiration: bool = True,
    ) -> None:
        interval_ms = self._config.abort_timed_out_transactions_interval_ms
        self._scheduler.schedule(
            "transaction-abort",
            self.abort_timed_out_transactions,
            delay_ms=interval_ms,
            period_ms=interval_ms,
        )
        self._state_manager.startup(
            retrieve_partition_count,
            enable_transactional_id_expiration=enable_transactional_id_expiration,
        )
        self._marker_channel_manager.start()
        self._is_active.set()

    def shutdown(self) -> None:
        """Idempotent. The scheduler is its owner's to end, before this."""
        if not self._is_active.is_set():
            return
        self._is_active.clear()
        self._marker_channel_manager.shutdown()
        self._state_manager.shutdown()

    def partition_for(self, transactional_id: str) -> int:
        return self._state_manager.partition_for(transactional_id)

    def on_election(self, txn_partition: int, coordinator_epoch: int) -> None:
        """This broker leads a partition of __transaction_state from now on."""
        # What an earlier term has left behind.
        self._marker_channel_manager.remove_markers_for_txn_topic_partition(txn_partition)
        self._state_manager.load_transactions_for_txn_topic_partition(
            txn_partition, coordinator_epoch, self._marker_channel_manager.add_txn_markers_to_send
        )

    def on_resignation(self, txn_partition: int, coordinator_epoch: int | None) -> None:
        """Another broker leads it, or it is gone (None: at whatever epoch)."""
        self._state_manager.remove_transactions_for_txn_topic_partition(
            txn_partition, coordinator_epoch
        )
        self._marker_channel_manager.remove_markers_for_txn_topic_partition(txn_partition)

    # --- InitProducerId

    def handle_init_producer_id(
        self,
        transactional_id: str | None,
        transaction_timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        callback: InitProducerIdCallback,
    ) -> None:
        if transactional_id is None:
            # Merely idempotent: nobody is to be fenced, so any id will do.
            producer_id = self._generate_producer_id()
            callback(
                InitProducerIdResult(error=producer_id)
                if isinstance(producer_id, Errors)
                else InitProducerIdResult(producer_id=producer_id, producer_epoch=0)
            )
            return
        prepared = self._prepare_init_producer_id(
            transactional_id, transaction_timeout_ms, expected
        )
        if isinstance(prepared, Errors):
            callback(InitProducerIdResult(error=prepared))
            return
        coordinator_epoch, transit = prepared
        if transit.txn_state is TransactionState.PREPARE_EPOCH_FENCE:
            # The client asks again, until the transaction of its predecessor has been aborted.
            self._end.end_transaction(
                transactional_id,
                producer_id=transit.producer_id,
                producer_epoch=transit.producer_epoch,
                result=TransactionResult.ABORT,
                is_from_client=False,
                callback=lambda error: callback(
                    InitProducerIdResult(
                        error=Errors.CONCURRENT_TRANSACTIONS if error is Errors.NONE else error
                    )
                ),
            )
            return

        def on_appended(error: Errors) -> None:
            if error is not Errors.NONE:
                callback(InitProducerIdResult(error=error))
                return
            logger.info(
                "%s is producer %d at epoch %d",
                transactional_id,
                transit.producer_id,
                transit.producer_epoch,
            )
            callback(
                InitProducerIdResult(
                    producer_id=transit.producer_id, producer_epoch=transit.producer_epoch
                )
            )

        self._state_manager.append_transaction_to_log(
            transactional_id, coordinator_epoch, transit, on_appended
        )

    def _prepare_init_producer_id(
        self,
        transactional_id: str,
        transaction_timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
    ) -> tuple[int, TxnTransitMetadata] | Errors:
        if not transactional_id:
            return Errors.INVALID_REQUEST
        if not self._state_manager.validate_transaction_timeout_ms(transaction_timeout_ms):
            return Errors.INVALID_TRANSACTION_TIMEOUT
        found = self._state_manager.get_transaction_state(transactional_id)
        if found is None:
            producer_id = self._generate_producer_id()
            if isinstance(producer_id, Errors):
                return producer_id
            found = self._state_manager.put_transaction_state_if_not_exists(
                TransactionMetadata(
                    transactional_id,
                    producer_id=producer_id,
                    txn_timeout_ms=transaction_timeout_ms,
                    txn_last_update_timestamp=self._time.milliseconds(),
                )
            )
        if isinstance(found, Errors):
            return found
        with found.transaction_metadata.lock:
            transit = self._prepare_init_locked(
                found.transaction_metadata, transaction_timeout_ms, expected
            )
        if isinstance(transit, Errors):
            return transit
        return found.coordinator_epoch, transit

    def _prepare_init_locked(
        self,
        metadata: TransactionMetadata,
        transaction_timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
    ) -> TxnTransitMetadata | Errors:
        if metadata.pending_transition_in_progress:
            return Errors.CONCURRENT_TRANSACTIONS
        if expected is not None and not _may_continue(metadata, expected):
            return Errors.PRODUCER_FENCED
        now_ms = self._time.milliseconds()
        match metadata.state:
            case TransactionState.PREPARE_ABORT | TransactionState.PREPARE_COMMIT:
                return Errors.CONCURRENT_TRANSACTIONS
            case TransactionState.ONGOING:
                return metadata.prepare_fence_producer_epoch()
            case (
                TransactionState.EMPTY
                | TransactionState.COMPLETE_ABORT
                | TransactionState.COMPLETE_COMMIT
            ):
                if metadata.is_producer_epoch_exhausted and (
                    expected is None or expected.epoch == metadata.producer_epoch
                ):
                    producer_id = self._generate_producer_id()
                    if isinstance(producer_id, Errors):
                        return producer_id
                    return metadata.prepare_producer_id_rotation(
                        producer_id,
                        transaction_timeout_ms,
                        now_ms,
                        record_last_epoch=expected is not None,
                    )
                try:
                    return metadata.prepare_increment_producer_epoch(
                        transaction_timeout_ms, None if expected is None else expected.epoch, now_ms
                    )
                except ProducerFencedError:
                    return Errors.PRODUCER_FENCED
            case _:
                raise IllegalTransitionError(f"{metadata} must not be in this state")

    def _generate_producer_id(self) -> int | Errors:
        try:
            return self._producer_id_manager.generate_producer_id()
        except KafkaError as e:
            logger.warning("There is no producer id to be had: %s", e)
            return Errors.for_exception(e)

    # --- AddPartitionsToTxn

    def handle_add_partitions_to_transaction(
        self,
        transactional_id: str | None,
        *,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        callback: AppendCallback,
    ) -> None:
        found = self._state_manager.existing_transaction_state(transactional_id)
        if isinstance(found, Errors):
            callback(found)
            return
        metadata = found.transaction_metadata
        with metadata.lock:
            error: Errors | None = _producer_error(metadata, producer_id, producer_epoch)
            if error is None:
                if metadata.pending_transition_in_progress or metadata.state in (
                    TransactionState.PREPARE_COMMIT,
                    TransactionState.PREPARE_ABORT,
                ):
                    error = Errors.CONCURRENT_TRANSACTIONS
                elif metadata.state is TransactionState.ONGOING and (
                    metadata.topic_partitions.issuperset(partitions)
                ):
                    error = Errors.NONE
                else:
                    transit = metadata.prepare_add_partitions(partitions, self._time.milliseconds())
        if error is not None:
            callback(error)
        else:
            self._state_manager.append_transaction_to_log(
                metadata.transactional_id, found.coordinator_epoch, transit, callback
            )

    def handle_verify_partitions_in_transaction(
        self,
        transactional_id: str | None,
        *,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
    ) -> dict[TopicPartition, Errors]:
        """Whether partitions belong to the ongoing transaction, without adding them."""
        found = self._state_manager.existing_transaction_state(transactional_id)
        if isinstance(found, Errors):
            return dict.fromkeys(partitions, found)
        metadata = found.transaction_metadata
        with metadata.lock:
            # A pending change is no matter: the guard of the append settles that race.
            error = _producer_error(metadata, producer_id, producer_epoch)
            if error is None and metadata.state in (
                TransactionState.PREPARE_COMMIT,
                TransactionState.PREPARE_ABORT,
            ):
                error = Errors.CONCURRENT_TRANSACTIONS
            if error is not None:
                return dict.fromkeys(partitions, error)
            return {
                partition: Errors.NONE
                if partition in metadata.topic_partitions
                else Errors.TRANSACTION_ABORTABLE
                for partition in partitions
            }

    # --- EndTxn

    def handle_end_transaction(
        self,
        transactional_id: str | None,
        *,
        producer_id: int,
        producer_epoch: int,
        result: TransactionResult,
        callback: AppendCallback,
    ) -> None:
        """Calls back when the decision is in the log; the markers follow."""
        self._end.end_transaction(
            transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            result=result,
            is_from_client=True,
            callback=callback,
        )

    def abort_timed_out_transactions(self) -> None:
        for transactional_id, producer_id in self._state_manager.timed_out_transactions():
            found = self._state_manager.get_transaction_state(transactional_id)
            if found is None or isinstance(found, Errors):
                continue
            metadata = found.transaction_metadata
            with metadata.lock:
                if (
                    metadata.producer_id != producer_id
                    or metadata.pending_transition_in_progress
                    or metadata.state is not TransactionState.ONGOING
                ):
                    continue
                transit = metadata.prepare_fence_producer_epoch()
            self._end.end_transaction(
                transactional_id,
                producer_id=transit.producer_id,
                producer_epoch=transit.producer_epoch,
                result=TransactionResult.ABORT,
                is_from_client=False,
                callback=functools.partial(_log_timeout, transactional_id),
            )
        self._try_complete_actions()

    # --- for administrators

    def handle_describe_transactions(self, transactional_id: str) -> TransactionDescription:
        if not self._is_active.is_set():
            return TransactionDescription(Errors.COORDINATOR_NOT_AVAILABLE)
        if not transactional_id:
            return TransactionDescription(Errors.INVALID_REQUEST)
        found = self._state_manager.get_transaction_state(transactional_id)
        if found is None:
            return TransactionDescription(Errors.TRANSACTIONAL_ID_NOT_FOUND)
        if isinstance(found, Errors):
            return TransactionDescription(found)
        metadata = found.transaction_metadata
        with metadata.lock:
            return TransactionDescription(
                Errors.NONE,
                state=metadata.state,
                timeout_ms=metadata.txn_timeout_ms,
                start_timestamp=metadata.txn_start_timestamp,
                producer_id=metadata.producer_id,
                producer_epoch=metadata.producer_epoch,
                topic_partitions=frozenset(metadata.topic_partitions),
            )

    def handle_list_transactions(
        self, *, producer_ids: Collection[int], state_names: Collection[str], min_duration_ms: int
    ) -> TransactionListing:
        if not self._is_active.is_set():
            return TransactionListing(Errors.COORDINATOR_NOT_AVAILABLE)
        if self._state_manager.is_loading():
            return TransactionListing(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        states = {name: TransactionState.from_name(name) for name in state_names}
        return TransactionListing(
            transactions=tuple(
                self._state_manager.list_transaction_states(
                    producer_ids=producer_ids,
                    states={s for s in states.values() if s is not None} if states else None,
                    min_duration_ms=min_duration_ms,
                )
            ),
            unknown_states=tuple(name for name, state in states.items() if state is None),
        )


def _producer_error(
    metadata: TransactionMetadata, producer_id: int, producer_epoch: int
) -> Errors | None:
    if metadata.producer_id != producer_id:
        return Errors.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer_epoch:
        return Errors.PRODUCER_FENCED
    return None


def _may_continue(metadata: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether a producer that names itself in InitProducerId may be the present one (KIP-360)."""
    return (
        # Just made: the id was forgotten, and nobody else has come since.
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        # Its epoch is looked at when it is raised.
        or expected.producer_id == metadata.producer_id
        # The answer that told it of its new id was lost.
        or (
            expected.producer_id == metadata.last_producer_id and is_epoch_exhausted(expected.epoch)
        )
    )


def _log_timeout(transactional_id: str, error: Errors) -> None:
    if error is Errors.NONE:
        logger.info("The transaction of %s has timed out and is aborted", transactional_id)
    else:
        logger.warning(
            "The transaction of %s has timed out, but cannot be aborted yet: %s",
            transactional_id,
            error.name,
        )
