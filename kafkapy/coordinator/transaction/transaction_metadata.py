"""What the coordinator knows about one transactional id."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from kafkapy.common.errors import ProducerFencedError
from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.common.record.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.transaction_state import TransactionState

_MAX_EPOCH = (1 << 15) - 1


class IllegalTransitionError(Exception):
    """A step that no request can lead to: a fault of the coordinator itself."""


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """The very last epoch is kept for fencing, so that an abort is always possible."""
    return producer_epoch >= _MAX_EPOCH - 1


@dataclass(frozen=True, slots=True)
class TxnTransitMetadata:
    """What a transaction will be once this is in the log.

    Ports: kafka.coordinator.transaction.TxnTransitMetadata
    """

    producer_id: int
    last_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    txn_timeout_ms: int
    txn_state: TransactionState
    topic_partitions: frozenset[TopicPartition]
    txn_start_timestamp: int
    txn_last_update_timestamp: int


class TransactionMetadata:
    """A transactional id's producer and transaction.

    A change is prepared, which sets `pending_state`, written to the log, then completed; meanwhile
    no other can be prepared. `lock` guards everything that is not constant; methods want it held.

    Ports: kafka.coordinator.transaction.TransactionMetadata
    """

    __slots__ = (
        "has_failed_epoch_fence",
        "last_producer_epoch",
        "last_producer_id",
        "lock",
        "pending_state",
        "producer_epoch",
        "producer_id",
        "state",
        "topic_partitions",
        "transactional_id",
        "txn_last_update_timestamp",
        "txn_start_timestamp",
        "txn_timeout_ms",
    )

    def __init__(
        self,
        transactional_id: str,
        *,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        last_producer_id: int = NO_PRODUCER_ID,
        last_producer_epoch: int = NO_PRODUCER_EPOCH,
        txn_timeout_ms: int,
        state: TransactionState = TransactionState.EMPTY,
        topic_partitions: Iterable[TopicPartition] = (),
        txn_start_timestamp: int = NO_TIMESTAMP,
        txn_last_update_timestamp: int,
    ) -> None:
        self.transactional_id = transactional_id  # constant after construction
        self.lock = threading.RLock()
        # guarded by self.lock
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        # Of the producer before the last epoch bump, to recognise a repeated InitProducerId.
        self.last_producer_id = last_producer_id
        self.last_producer_epoch = last_producer_epoch
        self.txn_timeout_ms = txn_timeout_ms
        self.state = state
        self.topic_partitions = set(topic_partitions)
        self.txn_start_timestamp = txn_start_timestamp
        self.txn_last_update_timestamp = txn_last_update_timestamp
        self.pending_state: TransactionState | None = None
        # The epoch was raised to fence a producer, but the abort could not be written.
        self.has_failed_epoch_fence = False

    @property
    def pending_transition_in_progress(self) -> bool:
        return self.pending_state is not None

    @property
    def is_producer_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def _has_pending_transaction(self) -> bool:
        return self.state in (
            TransactionState.ONGOING,
            TransactionState.PREPARE_ABORT,
            TransactionState.PREPARE_COMMIT,
        )

    def remove_partition(self, topic_partition: TopicPartition) -> None:
        """Its marker is written."""
        if self.state not in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
            raise IllegalTransitionError(
                f"{topic_partition} cannot leave the transaction of {self.transactional_id} in "
                f"state {self.state.label}"
            )
        self.topic_partitions.discard(topic_partition)

    # --- preparing

    def prepare_fence_producer_epoch(self) -> TxnTransitMetadata:
        """Raises the epoch, so that the abort that follows shuts the present producer out."""
        if self.producer_epoch == _MAX_EPOCH:
            raise IllegalTransitionError(
                f"The epoch of producer {self.producer_id} is the last and cannot be fenced"
            )
        # No client has seen the epoch of a fence that failed, so it need not be raised again.
        bumped = self.producer_epoch if self.has_failed_epoch_fence else self.producer_epoch + 1
        return self._prepare_transition_to(
            TransactionState.PREPARE_EPOCH_FENCE,
            producer_epoch=bumped,
            last_producer_epoch=NO_PRODUCER_EPOCH,
            topic_partitions=frozenset(self.topic_partitions),
            txn_start_timestamp=self.txn_start_timestamp,
            update_timestamp=self.txn_last_update_timestamp,
        )

    def prepare_increment_producer_epoch(
        self, new_txn_timeout_ms: int, expected_producer_epoch: int | None, update_timestamp: int
    ) -> TxnTransitMetadata:
        """Raises ProducerFencedError unless the expected epoch is the present one, or the one
        before it: then the same request came before and its answer was lost."""
        next_epoch, last_epoch = self.producer_epoch + 1, self.producer_epoch
        if expected_producer_epoch is None:
            last_epoch = NO_PRODUCER_EPOCH
        elif self.producer_epoch not in (NO_PRODUCER_EPOCH, expected_producer_epoch):
            if expected_producer_epoch != self.last_producer_epoch:
                raise ProducerFencedError(
                    f"{self.transactional_id} is at epoch {self.producer_epoch}, not "
                    f"{expected_producer_epoch}"
                )
            next_epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if next_epoch > self.producer_epoch and self.is_producer_epoch_exhausted:
            raise IllegalTransitionError(f"Producer {self.producer_id} has no epochs left")
        return self._prepare_transition_to(
            TransactionState.EMPTY,
            producer_epoch=next_epoch,
            last_producer_epoch=last_epoch,
            txn_timeout_ms=new_txn_timeout_ms,
            update_timestamp=update_timestamp,
        )

    def prepare_producer_id_rotation(
        self,
        new_producer_id: int,
        new_txn_timeout_ms: int,
        update_timestamp: int,
        *,
        record_last_epoch: bool,
    ) -> TxnTransitMetadata:
        """The epochs of the producer id are used up: another one, from epoch 0."""
        if self._has_pending_transaction:
            raise IllegalTransitionError(
                f"{self.transactional_id} cannot change its producer id within a transaction"
            )
        return self._prepare_transition_to(
            TransactionState.EMPTY,
            producer_id=new_producer_id,
            producer_epoch=0,
            last_producer_epoch=self.producer_epoch if record_last_epoch else NO_PRODUCER_EPOCH,
            txn_timeout_ms=new_txn_timeout_ms,
            update_timestamp=update_timestamp,
        )

    def prepare_add_partitions(
        self, added: Iterable[TopicPartition], update_timestamp: int
    ) -> TxnTransitMetadata:
        begins = self.state is not TransactionState.ONGOING
        return self._prepare_transition_to(
            TransactionState.ONGOING,
            topic_partitions=frozenset(self.topic_partitions).union(added),
            txn_start_timestamp=update_timestamp if begins else self.txn_start_timestamp,
            update_timestamp=update_timestamp,
        )

    def prepare_abort_or_commit(
        self, new_state: TransactionState, update_timestamp: int
    ) -> TxnTransitMetadata:
        return self._prepare_transition_to(
            new_state,
            topic_partitions=frozenset(self.topic_partitions),
            txn_start_timestamp=self.txn_start_timestamp,
            update_timestamp=update_timestamp,
        )

    def prepare_complete(self, update_timestamp: int) -> TxnTransitMetadata:
        new_state = (
            TransactionState.COMPLETE_COMMIT
            if self.state is TransactionState.PREPARE_COMMIT
            else TransactionState.COMPLETE_ABORT
        )
        transit = self._prepare_transition_to(
            new_state,
            txn_start_timestamp=self.txn_start_timestamp,
            update_timestamp=update_timestamp,
        )
        # The decision is in the log, and with it the epoch.
        self.has_failed_epoch_fence = False
        return transit

    def prepare_dead(self) -> TxnTransitMetadata:
        return self._prepare_transition_to(
            TransactionState.DEAD,
            txn_start_timestamp=self.txn_start_timestamp,
            update_timestamp=self.txn_last_update_timestamp,
        )

    def _prepare_transition_to(
        self,
        state: TransactionState,
        *,
        producer_id: int | None = None,
        producer_epoch: int | None = None,
        last_producer_epoch: int | None = None,
        txn_timeout_ms: int | None = None,
        topic_partitions: frozenset[TopicPartition] = frozenset(),
        txn_start_timestamp: int = NO_TIMESTAMP,
        update_timestamp: int,
    ) -> TxnTransitMetadata:
        if self.pending_state is not None:
            raise IllegalTransitionError(
                f"{self.transactional_id} cannot go to {state.label} while it goes to "
                f"{self.pending_state.label}"
            )
        if self.state not in state.valid_previous_states:
            raise IllegalTransitionError(
                f"{self.transactional_id} cannot go from {self.state.label} to {state.label}"
            )
        transit = TxnTransitMetadata(
            producer_id=self.producer_id if producer_id is None else producer_id,
            last_producer_id=self.producer_id,
            producer_epoch=self.producer_epoch if producer_epoch is None else producer_epoch,
            last_producer_epoch=(
                self.last_producer_epoch if last_producer_epoch is None else last_producer_epoch
            ),
            txn_timeout_ms=self.txn_timeout_ms if txn_timeout_ms is None else txn_timeout_ms,
            txn_state=state,
            topic_partitions=topic_partitions,
            txn_start_timestamp=txn_start_timestamp,
            txn_last_update_timestamp=update_timestamp,
        )
        # A transactional id may expire before its first InitProducerId has reached the log.
        if transit.producer_id < 0 or (
            state is not TransactionState.DEAD and transit.producer_epoch < 0
        ):
            raise IllegalTransitionError(
                f"{self.transactional_id} cannot have producer {transit.producer_id} with epoch "
                f"{transit.producer_epoch}"
            )
        self.pending_state = state
        return transit

    # --- completing

    def complete_transition_to(self, transit: TxnTransitMetadata) -> None:
        """The prepared change is in the log and replicated. Raises IllegalTransitionError, with
        nothing changed, if it does not follow from what is there."""
        if self.pending_state is not transit.txn_state or not self._follows(transit):
            raise IllegalTransitionError(f"{self} cannot become {transit}")
        match transit.txn_state:
            case TransactionState.EMPTY:
                self.txn_timeout_ms = transit.txn_timeout_ms
                self.producer_id = transit.producer_id
                self.producer_epoch = transit.producer_epoch
                self.last_producer_id = transit.last_producer_id
                self.last_producer_epoch = transit.last_producer_epoch
            case TransactionState.ONGOING:
                self.txn_start_timestamp = transit.txn_start_timestamp
                self.topic_partitions |= transit.topic_partitions
            case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
                self.txn_start_timestamp = transit.txn_start_timestamp
                self.topic_partitions.clear()
        self.txn_last_update_timestamp = transit.txn_last_update_timestamp
        self.pending_state = None
        self.state = transit.txn_state

    def _follows(self, transit: TxnTransitMetadata) -> bool:
        same_producer = (transit.producer_id, transit.producer_epoch) == (
            self.producer_id,
            self.producer_epoch,
        )
        same_timeout = transit.txn_timeout_ms == self.txn_timeout_ms
        match transit.txn_state:
            case TransactionState.EMPTY:
                bumped = transit.producer_epoch in (self.producer_epoch, self.producer_epoch + 1)
                rotated = transit.producer_epoch == 0 and transit.producer_id != self.producer_id
                return (
                    (bumped or rotated)
                    and not transit.topic_partitions
                    and transit.txn_start_timestamp == NO_TIMESTAMP
                )
            case TransactionState.ONGOING:
                return (
                    same_producer
                    and same_timeout
                    and self.topic_partitions <= transit.topic_partitions
                )
            case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
                return (
                    same_producer
                    and same_timeout
                    and self.topic_partitions == transit.topic_partitions
                    and self.txn_start_timestamp == transit.txn_start_timestamp
                )
            case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
                return (
                    same_producer and same_timeout and transit.txn_start_timestamp != NO_TIMESTAMP
                )
            case _:
                # A fence turns into an abort before it is written; the dead are removed instead.
                return False

    def __repr__(self) -> str:
        pending = "" if self.pending_state is None else f" -> {self.pending_state.label}"
        return (
            f"TransactionMetadata({self.transactional_id}, {self.state.label}{pending}, "
            f"producer={self.producer_id}/{self.producer_epoch}, "
            f"partitions={sorted(self.topic_partitions)})"
        )
