"""Committing and aborting."""

from __future__ import annotations

import logging

from kafkapy.common.errors import Errors
from kafkapy.common.record.record_batch import NO_PRODUCER_EPOCH
from kafkapy.coordinator.transaction.transaction_marker_channel_manager import (
    TransactionMarkerChannelManager,
)
from kafkapy.coordinator.transaction.transaction_metadata import (
    IllegalTransitionError,
    TransactionMetadata,
    TxnTransitMetadata,
)
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.coordinator.transaction.transaction_state_manager import (
    AppendCallback,
    CoordinatorEpochAndTxnMetadata,
    TransactionStateManager,
)
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

_PREPARE = {
    TransactionResult.COMMIT: TransactionState.PREPARE_COMMIT,
    TransactionResult.ABORT: TransactionState.PREPARE_ABORT,
}
# What EndTxn is told in a state where there is nothing left to decide.
_ANSWERS: dict[tuple[TransactionState, TransactionResult], Errors] = {
    (TransactionState.COMPLETE_COMMIT, TransactionResult.COMMIT): Errors.NONE,
    (TransactionState.COMPLETE_ABORT, TransactionResult.ABORT): Errors.NONE,
    (TransactionState.PREPARE_COMMIT, TransactionResult.COMMIT): Errors.CONCURRENT_TRANSACTIONS,
    (TransactionState.PREPARE_ABORT, TransactionResult.ABORT): Errors.CONCURRENT_TRANSACTIONS,
}


class TransactionEnd:
    """Writes the decision about a transaction, then has its markers sent. Thread-safe.

    Ports: kafka.coordinator.transaction.TransactionCoordinator (endTransaction)
    """

    def __init__(
        self,
        state_manager: TransactionStateManager,
        marker_channel_manager: TransactionMarkerChannelManager,
        time: Time,
    ) -> None:
        self._state_manager = state_manager
        self._marker_channel_manager = marker_channel_manager
        self._time = time

    def end_transaction(
        self,
        transactional_id: str | None,
        *,
        producer_id: int,
        producer_epoch: int,
        result: TransactionResult,
        is_from_client: bool,
        callback: AppendCallback,
    ) -> None:
        """Only the coordinator itself may bring a raised epoch, to fence the producer."""
        found = self._state_manager.existing_transaction_state(transactional_id)
        if isinstance(found, Errors):
            callback(found)
            return
        metadata = found.transaction_metadata
        with metadata.lock:
            is_epoch_fence = metadata.pending_state is TransactionState.PREPARE_EPOCH_FENCE
            prepared = self._prepare_locked(
                metadata, producer_id, producer_epoch, result, is_from_client=is_from_client
            )
        if isinstance(prepared, Errors):
            callback(prepared)
            return
        coordinator_epoch = found.coordinator_epoch

        def on_appended(error: Errors) -> None:
            if error is Errors.NONE:
                callback(self._send_markers(metadata, coordinator_epoch, result))
                return
            if is_epoch_fence:
                self._mark_failed_fence(metadata.transactional_id, coordinator_epoch)
            callback(error)

        self._state_manager.append_transaction_to_log(
            metadata.transactional_id, coordinator_epoch, prepared, on_appended
        )

    def _prepare_locked(
        self,
        metadata: TransactionMetadata,
        producer_id: int,
        producer_epoch: int,
        result: TransactionResult,
        *,
        is_from_client: bool,
    ) -> TxnTransitMetadata | Errors:
        if metadata.producer_id != producer_id:
            return Errors.INVALID_PRODUCER_ID_MAPPING
        if producer_epoch < metadata.producer_epoch or (
            is_from_client and producer_epoch != metadata.producer_epoch
        ):
            return Errors.PRODUCER_FENCED
        is_fence = metadata.pending_state is TransactionState.PREPARE_EPOCH_FENCE
        if metadata.pending_transition_in_progress and (is_from_client or not is_fence):
            return Errors.CONCURRENT_TRANSACTIONS
        if metadata.state is TransactionState.ONGOING:
            if is_fence:
                # The fence was never to be written by itself: the abort carries its epoch.
                metadata.pending_state = None
                metadata.producer_epoch = producer_epoch
                metadata.last_producer_epoch = NO_PRODUCER_EPOCH
            return metadata.prepare_abort_or_commit(_PREPARE[result], self._time.milliseconds())
        if metadata.state in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE):
            raise IllegalTransitionError(f"{metadata} must not be in this state")
        answer = _ANSWERS.get((metadata.state, result), Errors.INVALID_TXN_STATE)
        if answer is Errors.INVALID_TXN_STATE:
            logger.debug("%s cannot end with %s", metadata, result.name)
        return answer

    def _send_markers(
        self, metadata: TransactionMetadata, coordinator_epoch: int, result: TransactionResult
    ) -> Errors:
        """The decision is in the log, so the client need not wait for its markers."""
        found = self._state_manager.get_transaction_state(metadata.transactional_id)
        if isinstance(found, Errors):
            return found
        if found is None or found.coordinator_epoch != coordinator_epoch:
            return Errors.NOT_COORDINATOR
        with metadata.lock:
            if metadata.pending_transition_in_progress:
                return Errors.CONCURRENT_TRANSACTIONS
            if metadata.state is not _PREPARE[result]:
                return Errors.INVALID_TXN_STATE
            transit = metadata.prepare_complete(self._time.milliseconds())
        self._marker_channel_manager.add_txn_markers_to_send(
            coordinator_epoch, result, metadata, transit
        )
        return Errors.NONE

    def _mark_failed_fence(self, transactional_id: str, coordinator_epoch: int) -> None:
        found = self._state_manager.get_transaction_state(transactional_id)
        if (
            isinstance(found, CoordinatorEpochAndTxnMetadata)
            and found.coordinator_epoch == coordinator_epoch
        ):
            with found.transaction_metadata.lock:
                found.transaction_metadata.has_failed_epoch_fence = True
