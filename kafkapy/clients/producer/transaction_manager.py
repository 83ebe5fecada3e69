"""The sequence numbers and transactions of an idempotent producer."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.clients.producer.prepared_transaction import PreparedTransaction
from kafkapy.clients.producer.producer_batch import ProducerBatch
from kafkapy.clients.producer.producer_id_and_epoch import (
    MAX_PRODUCER_EPOCH,
    NO_PRODUCER_ID_AND_EPOCH,
    ProducerIdAndEpoch,
)
from kafkapy.clients.producer.transaction_state import TransactionState
from kafkapy.clients.producer.transactional_request_result import TransactionalRequestResult
from kafkapy.clients.producer.txn_partition_map import TxnPartitionMap
from kafkapy.clients.producer.txn_request_handlers import (
    AddOffsetsToTxnHandler,
    AddPartitionsToTxnHandler,
    EndTxnHandler,
    FindCoordinatorHandler,
    InitProducerIdHandler,
    TxnRequestHandler,
)
from kafkapy.common.errors import (
    ClusterAuthorizationError,
    Errors,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    KafkaError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RetriableError,
    TransactionalIdAuthorizationError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)
from kafkapy.common.protocol.coordinator_type import CoordinatorType
from kafkapy.common.record.record_batch import NO_SEQUENCE, increment_sequence
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node

logger = logging.getLogger(__name__)

_NO_TIMEOUT_MS = 2**31 - 1
_UNKNOWN_LOG_START_OFFSET = -1
_FATAL_ERRORS = (
    ClusterAuthorizationError,
    TransactionalIdAuthorizationError,
    ProducerFencedError,
    UnsupportedVersionError,
)


@dataclass(frozen=True, slots=True)
class _PendingTransition:
    """A step whose caller has not heard of its end; after a time-out it is to be called again."""

    result: TransactionalRequestResult
    state: TransactionState
    operation: str


class TransactionManager:
    """What makes retries safe: who the producer is, what is in flight, where its transaction is.

    Thread-safe. Users' threads ask for steps and wait for their results; the sender's thread takes
    the requests that makes (`next_request`) and tells what came of them.

    Ports: org.apache.kafka.clients.producer.internals.TransactionManager
    """

    def __init__(
        self,
        *,
        transactional_id: str | None,
        transaction_timeout_ms: int,
        retry_backoff_ms: int,
    ) -> None:
        # constant after construction
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.retry_backoff_ms = retry_backoff_ms
        self.lock = threading.RLock()
        # guarded by self.lock
        self._state = TransactionState.UNINITIALIZED
        self._last_error: KafkaError | None = None
        self._producer_id_and_epoch = NO_PRODUCER_ID_AND_EPOCH
        self._partition_map = TxnPartitionMap()
        self._pending_requests: list[tuple[int, int, TxnRequestHandler]] = []
        self._request_order = itertools.count()
        self._pending_transition: _PendingTransition | None = None
        self._new_partitions: set[TopicPartition] = set()
        self._pending_partitions: set[TopicPartition] = set()
        self._partitions_in_transaction: set[TopicPartition] = set()
        self._unresolved_sequences: dict[TopicPartition, int] = {}
        self._partitions_to_rewrite: set[TopicPartition] = set()
        self._epoch_bump_required = False
        self._transaction_started = False
        self._coordinators: dict[CoordinatorType, Node] = {}
        self._coordinator_supports_bumping_epoch = False
        self._in_flight_correlation_id: int | None = None

    # The steps of a transaction, for users' threads

    @property
    def is_transactional(self) -> bool:
        return self.transactional_id is not None

    def initialize_transactions(self) -> TransactionalRequestResult:
        with self.lock:
            self.maybe_fail_with_error()
            return self._cached(
                self._initialize_for_user_locked, TransactionState.INITIALIZING, "init_transactions"
            )

    def begin_transaction(self) -> None:
        with self.lock:
            self._ensure_transactional()
            self._raise_if_pending_locked("begin_transaction")
            self.maybe_fail_with_error()
            self._transition_to_locked(TransactionState.IN_TRANSACTION)

    def prepare_transaction(self) -> PreparedTransaction:
        """Nothing more goes into the transaction, which outlives the producer. After a flush."""
        with self.lock:
            self._ensure_transactional()
            self._raise_if_pending_locked("prepare_transaction")
            self.maybe_fail_with_error()
            if not self._transaction_started:
                raise IllegalStateError("There is no transaction with records to be prepared")
            self._transition_to_locked(TransactionState.PREPARED_TRANSACTION)
            assert self.transactional_id is not None
            return PreparedTransaction(self.transactional_id, *self._producer_id_and_epoch)

    def begin_commit(self) -> TransactionalRequestResult:
        def start() -> TransactionalRequestResult:
            self.maybe_fail_with_error()
            self._transition_to_locked(TransactionState.COMMITTING_TRANSACTION)
            return self._begin_completing_locked(is_commit=True)

        with self.lock:
            return self._cached(
                start, TransactionState.COMMITTING_TRANSACTION, "commit_transaction"
            )

    def begin_abort(self) -> TransactionalRequestResult:
        def start() -> TransactionalRequestResult:
            if self._state is not TransactionState.ABORTABLE_ERROR:
                self.maybe_fail_with_error()
            self._transition_to_locked(TransactionState.ABORTING_TRANSACTION)
            # What has not been added yet need not be.
            self._new_partitions.clear()
            return self._begin_completing_locked(is_commit=False)

        with self.lock:
            return self._cached(start, TransactionState.ABORTING_TRANSACTION, "abort_transaction")

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_metadata: ConsumerGroupMetadata,
    ) -> TransactionalRequestResult:
        with self.lock:
            self._ensure_transactional()
            self._raise_if_pending_locked("send_offsets_to_transaction")
            self.maybe_fail_with_error()
            if self._state is not TransactionState.IN_TRANSACTION:
                raise IllegalStateError(
                    f"Offsets can only be sent within a transaction, not while {self._state.name}"
                )
            handler = AddOffsetsToTxnHandler(self, offsets, group_metadata)
            self.enqueue(handler)
            return handler.result

    def ensure_may_send(self) -> None:
        """Raise unless a record may be appended now. Before it is: it could not be taken back."""
        if self._is_taking_records:
            return
        with self.lock:
            self.maybe_fail_with_error()
            self._raise_if_pending_locked("send")
            if not self.is_transactional:
                return
            if not self.has_producer_id:
                raise IllegalStateError("init_transactions must be called before a record is sent")
            if self._state is not TransactionState.IN_TRANSACTION:
                raise IllegalStateError(
                    f"Records can only be sent within a transaction, not while {self._state.name}"
                )

    def maybe_add_partition(self, partition: TopicPartition) -> None:
        """A record was appended to the partition: it belongs to the transaction."""
        if self._is_taking_records and partition in self._partitions_in_transaction:
            return
        with self.lock:
            self.ensure_may_send()
            if (
                self.is_transactional
                and partition not in self._partitions_in_transaction
                and partition not in self._pending_partitions
            ):
                self._partition_map.get_or_create(partition)
                self._new_partitions.add(partition)

    @property
    def _is_taking_records(self) -> bool:
        # Every record asks, so without the lock: a step that begins right now is as good as one
        # that begins right after.
        return self._state is TransactionState.IN_TRANSACTION and self._pending_transition is None

    def maybe_fail_with_error(self) -> None:
        """Raise what the producer or its transaction has failed with."""
        with self.lock:
            if not self.has_error:
                return
            error = self._last_error
            if isinstance(error, ProducerFencedError):
                raise ProducerFencedError(
                    f"The producer with the transactional id {self.transactional_id!r} and "
                    f"{self._producer_id_and_epoch} has been fenced by a newer one"
                )
            if isinstance(error, InvalidProducerEpochError):
                raise InvalidProducerEpochError(
                    f"The producer with the transactional id {self.transactional_id!r} and "
                    f"{self._producer_id_and_epoch} attempted to write with an old epoch"
                )
            raise KafkaError(f"The producer is in an error state: {error}") from error

    def maybe_transition_to_error_state(self, error: KafkaError) -> None:
        with self.lock:
            if isinstance(error, _FATAL_ERRORS):
                self.transition_to_fatal_error(error)
            elif self.is_transactional:
                if self.can_bump_epoch and not self.is_completing:
                    self._epoch_bump_required = True
                self.transition_to_abortable_error(error)

    # State

    @property
    def state(self) -> TransactionState:
        with self.lock:
            return self._state

    @property
    def last_error(self) -> KafkaError | None:
        with self.lock:
            return self._last_error

    @property
    def has_error(self) -> bool:
        return self.has_abortable_error or self.has_fatal_error

    @property
    def has_fatal_error(self) -> bool:
        return self._state is TransactionState.FATAL_ERROR

    @property
    def has_abortable_error(self) -> bool:
        return self._state is TransactionState.ABORTABLE_ERROR

    @property
    def is_completing(self) -> bool:
        return self._state in (
            TransactionState.COMMITTING_TRANSACTION,
            TransactionState.ABORTING_TRANSACTION,
        )

    @property
    def is_aborting(self) -> bool:
        return self._state is TransactionState.ABORTING_TRANSACTION

    @property
    def has_ongoing_transaction(self) -> bool:
        """Also one that has failed and is to be aborted."""
        return self.is_completing or self._state in (
            TransactionState.IN_TRANSACTION,
            TransactionState.ABORTABLE_ERROR,
        )

    def transition_to_abortable_error(self, error: KafkaError) -> None:
        with self.lock:
            if self._state is TransactionState.ABORTING_TRANSACTION:
                logger.debug("Ignoring %r while aborting", error)
                return
            self._transition_to_locked(TransactionState.ABORTABLE_ERROR, error)

    def transition_to_fatal_error(self, error: KafkaError) -> None:
        with self.lock:
            self._transition_to_locked(TransactionState.FATAL_ERROR, error)
            if self._pending_transition is not None:
                self._pending_transition.result.fail(error)

    def transition_to_uninitialized(self, error: KafkaError) -> None:
        """After a refusal that the user may have lifted: init_transactions may be tried again."""
        with self.lock:
            self._transition_to_locked(TransactionState.UNINITIALIZED)
            if self._pending_transition is not None:
                self._pending_transition.result.fail(error)
            self._last_error = None

    # Sequences, for the sender's thread

    @property
    def producer_id_and_epoch(self) -> ProducerIdAndEpoch:
        with self.lock:
            return self._producer_id_and_epoch

    @property
    def has_producer_id(self) -> bool:
        with self.lock:
            return self._producer_id_and_epoch.is_valid

    @property
    def can_bump_epoch(self) -> bool:
        return not self.is_transactional or self._coordinator_supports_bumping_epoch

    def sequence_number(self, partition: TopicPartition) -> int:
        with self.lock:
            return self._partition_map.get_or_create(partition).next_sequence

    def try_assign_sequence(self, batch: ProducerBatch) -> bool:
        """Number a batch that is about to be sent, unless that would break the order.

        False when the batch must wait: for the producer id, for its partition to be part of the
        transaction, or for batches before it.
        """
        partition = batch.topic_partition
        with self.lock:
            identity = self._producer_id_and_epoch
            if self.has_fatal_error or not identity.is_valid:
                return False
            if self.is_transactional and partition not in self._partitions_in_transaction:
                return False
            entry = self._partition_map.get_or_create(partition)
            if batch.has_sequence:
                # A batch tried again goes alone: the one that failed first is sent first.
                return entry.first_in_flight_sequence in (NO_SEQUENCE, batch.base_sequence)
            if partition in self._unresolved_sequences:
                return False
            if entry.producer_id_and_epoch != identity:
                if entry.in_flight:
                    return False  # what is new must not overtake what has the old epoch
                entry.start_sequences_at_beginning(identity)
            batch.set_producer_state(
                identity.producer_id,
                identity.epoch,
                entry.next_sequence,
                is_transactional=self.is_transactional,
            )
            entry.next_sequence = increment_sequence(entry.next_sequence, batch.record_count)
            entry.in_flight.add(batch)
            return True

    def add_in_flight_batch(self, batch: ProducerBatch) -> None:
        if not batch.has_sequence:
            raise ValueError(f"{batch} has no sequence")
        with self.lock:
            self._partition_map.get_or_create(batch.topic_partition).in_flight.add(batch)

    def remove_in_flight_batch(self, batch: ProducerBatch) -> None:
        with self.lock:
            if batch.has_sequence:
                self._partition_map.remove_in_flight_batch(batch)

    def has_in_flight_batches(self, partition: TopicPartition) -> bool:
        with self.lock:
            return self._partition_map.has_in_flight_batches(partition)

    def has_unresolved_sequence(self, partition: TopicPartition) -> bool:
        with self.lock:
            return partition in self._unresolved_sequences

    def mark_sequence_unresolved(self, batch: ProducerBatch) -> None:
        """A batch that was sent has expired: whether the broker has it is not known."""
        partition = batch.topic_partition
        with self.lock:
            following = batch.last_sequence + 1
            known = self._unresolved_sequences.get(partition, following)
            self._unresolved_sequences[partition] = max(known, following)

    def maybe_resolve_sequences(self) -> None:
        """Once nothing is in flight: either later batches have shown it, or the epoch is bumped."""
        with self.lock:
            for partition in list(self._unresolved_sequences):
                if self._partition_map.has_in_flight_batches(partition):
                    continue
                if not self._is_next_sequence_locked(partition, self.sequence_number(partition)):
                    if not self.is_transactional:
                        self._request_epoch_bump_locked(partition)
                    else:
                        reason = KafkaError(
                            "Records that were sent before were not acknowledged and can no longer"
                            " be retried"
                        )
                        if self.can_bump_epoch:
                            self._epoch_bump_required = True
                            self.transition_to_abortable_error(reason)
                        else:
                            self.transition_to_fatal_error(reason)
                del self._unresolved_sequences[partition]

    def bump_idempotent_epoch_and_reset_id_if_needed(self) -> None:
        """Ask for a producer id when there is none; a producer with transactions does that itself
        when its user says so."""
        with self.lock:
            if self.is_transactional:
                return
            if self._epoch_bump_required:
                self._bump_idempotent_epoch_locked()
            if self._state is not TransactionState.INITIALIZING and not self.has_producer_id:
                self._transition_to_locked(TransactionState.INITIALIZING)
                self.enqueue(
                    InitProducerIdHandler(
                        self,
                        identity=NO_PRODUCER_ID_AND_EPOCH,
                        transaction_timeout_ms=_NO_TIMEOUT_MS,
                        is_epoch_bump=False,
                    )
                )

    def handle_completed_batch(
        self, batch: ProducerBatch, base_offset: int, *, is_duplicate: bool
    ) -> None:
        with self.lock:
            self._partition_map.maybe_update_last_acked_sequence(batch)
            if not is_duplicate:
                self._partition_map.update_last_acked_offset(batch, base_offset)
            self.remove_in_flight_batch(batch)

    def handle_failed_batch(
        self, batch: ProducerBatch, error: KafkaError, *, adjust_sequence_numbers: bool
    ) -> None:
        with self.lock:
            self.maybe_transition_to_error_state(error)
            self.remove_in_flight_batch(batch)
            if self.has_fatal_error:
                return
            partition = batch.topic_partition
            is_lost = isinstance(error, UnknownProducerIdError) or (
                isinstance(error, OutOfOrderSequenceError) and not self.is_transactional
            )
            if is_lost:
                logger.error(
                    "%s of %s failed with %r: numbering starts over",
                    batch,
                    self._producer_id_and_epoch,
                    error,
                )
            if is_lost or (adjust_sequence_numbers and not self.is_transactional):
                # The sequence has a gap now, which only a new epoch can step over.
                self._request_epoch_bump_locked(partition)
            elif adjust_sequence_numbers and batch.has_sequence:
                entry = self._partition_map.get(partition)
                if entry is not None:
                    entry.adjust_sequences_due_to_failed_batch(batch)

    def can_retry(self, batch: ProducerBatch, error: Errors, log_start_offset: int) -> bool:
        """Whether sending the batch again can neither lose nor double nor reorder it."""
        partition = batch.topic_partition
        with self.lock:
            if error is Errors.UNKNOWN_PRODUCER_ID:
                if log_start_offset == _UNKNOWN_LOG_START_OFFSET:
                    return False
                if batch.sequence_has_been_reset:
                    return True
                entry = self._partition_map.get_or_create(partition)
                if entry.last_acked_offset < log_start_offset:
                    # The producer's earlier records are deleted, and its state with them.
                    if self.is_transactional:
                        entry.start_sequences_at_beginning(self._producer_id_and_epoch)
                    else:
                        self._request_epoch_bump_locked(partition)
                    return True
                if not self.is_transactional:
                    self._request_epoch_bump_locked(partition)
                    return True
            elif error is Errors.OUT_OF_ORDER_SEQUENCE_NUMBER:
                if not self.has_unresolved_sequence(partition) and (
                    batch.sequence_has_been_reset
                    or not self._is_next_sequence_locked(partition, batch.base_sequence)
                ):
                    # One before it failed; that is tried again first.
                    return True
                if not self.is_transactional:
                    self._request_epoch_bump_locked(partition)
                    return True
            exception = error.exception_class
            return exception is not None and issubclass(exception, RetriableError)

    # Requests, for the sender's thread

    @property
    def has_in_flight_request(self) -> bool:
        return self._in_flight_correlation_id is not None

    def set_in_flight_correlation_id(self, correlation_id: int | None) -> None:
        self._in_flight_correlation_id = correlation_id

    @property
    def in_flight_correlation_id(self) -> int | None:
        return self._in_flight_correlation_id

    @property
    def has_pending_requests(self) -> bool:
        with self.lock:
            return bool(self._pending_requests)

    def next_request(self, *, has_incomplete_batches: bool) -> TxnRequestHandler | None:
        """The next request to be sent; the end of a transaction waits for its records."""
        with self.lock:
            if self._new_partitions:
                self.enqueue(self._add_partitions_handler_locked())
            if not self._pending_requests:
                return None
            handler = self._pending_requests[0][2]
            if handler.is_end_txn and has_incomplete_batches:
                return None
            heapq.heappop(self._pending_requests)
            if self._maybe_terminate_locked(handler):
                return None
            if handler.is_end_txn and not self._transaction_started:
                # The coordinator knows nothing of it: there is nothing to end there.
                handler.result.done()
                if not self.has_fatal_error:
                    self.complete_transaction()
                if not self._pending_requests:
                    return None
                handler = heapq.heappop(self._pending_requests)[2]
            return handler

    def enqueue(self, handler: TxnRequestHandler) -> None:
        with self.lock:
            heapq.heappush(
                self._pending_requests, (handler.priority, next(self._request_order), handler)
            )

    def retry(self, handler: TxnRequestHandler) -> None:
        handler.is_retry = True
        self.enqueue(handler)

    def coordinator(self, kind: CoordinatorType) -> Node | None:
        with self.lock:
            return self._coordinators.get(kind)

    def lookup_coordinator_for(self, handler: TxnRequestHandler) -> None:
        if handler.coordinator_type is not None:
            self.lookup_coordinator(handler.coordinator_type, handler.coordinator_key)

    def lookup_coordinator(self, kind: CoordinatorType, key: str) -> None:
        with self.lock:
            self._coordinators.pop(kind, None)
            self.enqueue(FindCoordinatorHandler(self, kind, key))

    def handle_coordinator_ready(self, *, supports_bumping_epoch: bool) -> None:
        with self.lock:
            self._coordinator_supports_bumping_epoch = supports_bumping_epoch

    def fail_pending_requests(self, error: KafkaError) -> None:
        with self.lock:
            for _, _, handler in self._pending_requests:
                handler.fail_abortable(error)

    def authentication_failed(self, error: KafkaError) -> None:
        with self.lock:
            for _, _, handler in self._pending_requests:
                handler.fail_fatally(error)

    def close(self) -> None:
        """Nothing more will be sent: everybody who waits is told."""
        with self.lock:
            error = IllegalStateError("The producer was closed by force")
            if self._pending_transition is not None:
                self._pending_transition.result.fail(error)
            for _, _, handler in self._pending_requests:
                handler.result.fail(error)
            self._pending_requests.clear()

    # What the handlers of responses change; under the lock

    def set_coordinator(self, kind: CoordinatorType, node: Node) -> None:
        self._coordinators[kind] = node

    def initialized(self, identity: ProducerIdAndEpoch, *, is_epoch_bump: bool) -> None:
        logger.info("Producer id %d, epoch %d", identity.producer_id, identity.epoch)
        self._producer_id_and_epoch = identity
        self._transition_to_locked(TransactionState.READY)
        self._last_error = None
        if is_epoch_bump:
            self._partition_map.reset()
        self._rewrite_sequences_locked()

    def partitions_answered(self, partitions: set[TopicPartition]) -> None:
        self._pending_partitions -= partitions

    def partitions_added(self, partitions: set[TopicPartition]) -> None:
        self._partitions_in_transaction |= partitions
        self._transaction_started = True

    def offsets_added(self) -> None:
        self._transaction_started = True

    @property
    def has_partitions_in_transaction(self) -> bool:
        return bool(self._partitions_in_transaction)

    def abortable_error_if_possible(self, error: KafkaError) -> bool:
        """Whether the producer can go on after aborting, with a new epoch."""
        if not self.can_bump_epoch:
            return False
        self._epoch_bump_required = True
        return True

    def complete_transaction(self) -> None:
        if self._epoch_bump_required:
            self._transition_to_locked(TransactionState.INITIALIZING)
        else:
            self._transition_to_locked(TransactionState.READY)
        self._last_error = None
        self._epoch_bump_required = False
        self._transaction_started = False
        self._new_partitions.clear()
        self._pending_partitions.clear()
        self._partitions_in_transaction.clear()

    # Within

    def _initialize_for_user_locked(self) -> TransactionalRequestResult:
        self._transition_to_locked(TransactionState.INITIALIZING)
        return self._enqueue_init_locked(NO_PRODUCER_ID_AND_EPOCH, is_epoch_bump=False)

    def _enqueue_init_locked(
        self, identity: ProducerIdAndEpoch, *, is_epoch_bump: bool
    ) -> TransactionalRequestResult:
        handler = InitProducerIdHandler(
            self,
            identity=identity,
            transaction_timeout_ms=self.transaction_timeout_ms,
            is_epoch_bump=is_epoch_bump,
        )
        self.enqueue(handler)
        return handler.result

    def _begin_completing_locked(self, *, is_commit: bool) -> TransactionalRequestResult:
        if self._new_partitions:
            self.enqueue(self._add_partitions_handler_locked())
        # With a producer id that is not the transactional id's any more there is nothing to end.
        if not isinstance(self._last_error, InvalidPidMappingError):
            handler = EndTxnHandler(self, self._producer_id_and_epoch, is_commit=is_commit)
            self.enqueue(handler)
            if not self._epoch_bump_required:
                return handler.result
        return self._enqueue_init_locked(self._producer_id_and_epoch, is_epoch_bump=True)

    def _add_partitions_handler_locked(self) -> TxnRequestHandler:
        partitions = frozenset(self._new_partitions)
        self._pending_partitions |= partitions
        self._new_partitions.clear()
        return AddPartitionsToTxnHandler(self, self._producer_id_and_epoch, partitions)

    def _maybe_terminate_locked(self, handler: TxnRequestHandler) -> bool:
        """Fail a request that can do no good any more."""
        if not self.has_error:
            return False
        if self.has_abortable_error and isinstance(handler, FindCoordinatorHandler):
            return False  # the abort will need it
        assert self._last_error is not None
        handler.result.fail(self._last_error)
        return True

    def _cached(
        self,
        start: Callable[[], TransactionalRequestResult],
        state: TransactionState,
        operation: str,
    ) -> TransactionalRequestResult:
        """Start a step, unless it is under way since a call of it that timed out."""
        self._ensure_transactional()
        pending = self._pending_transition
        if pending is not None:
            if pending.result.is_acked:
                self._pending_transition = None
            elif pending.state is not state:
                raise IllegalStateError(
                    f"{operation} is not possible: {pending.operation} timed out before and must"
                    " be called again first"
                )
            else:
                return pending.result
        result = start()
        self._pending_transition = _PendingTransition(result, state, operation)
        return result

    def _raise_if_pending_locked(self, operation: str) -> None:
        pending = self._pending_transition
        if pending is None:
            return
        if pending.result.is_acked:
            self._pending_transition = None
            return
        raise IllegalStateError(
            f"{operation} is not possible: {pending.operation} has not ended yet, or timed out and"
            " must be called again first"
        )

    def _transition_to_locked(
        self, target: TransactionState, error: KafkaError | None = None
    ) -> None:
        if not target.may_follow(self._state):
            named = f"{self.transactional_id!r}: " if self.is_transactional else ""
            raise IllegalStateError(
                f"{named}a transaction cannot go from {self._state.name} to {target.name}"
            )
        if error is not None:
            self._last_error = error
            logger.info("From %s to %s: %r", self._state.name, target.name, error)
        self._state = target

    def _ensure_transactional(self) -> None:
        if not self.is_transactional:
            raise IllegalStateError("Transactions need a producer with a transactional.id")

    def _is_next_sequence_locked(self, partition: TopicPartition, sequence: int) -> bool:
        return sequence - self._partition_map.last_acked_sequence(partition) == 1

    def _request_epoch_bump_locked(self, partition: TopicPartition) -> None:
        self._epoch_bump_required = True
        self._partitions_to_rewrite.add(partition)

    def _bump_idempotent_epoch_locked(self) -> None:
        self._epoch_bump_required = False
        identity = self._producer_id_and_epoch
        if identity.epoch == MAX_PRODUCER_EPOCH:
            # A new id is asked for; sequences are rewritten when it comes.
            self._producer_id_and_epoch = NO_PRODUCER_ID_AND_EPOCH
            self._transition_to_locked(TransactionState.UNINITIALIZED)
            return
        self._producer_id_and_epoch = identity._replace(epoch=identity.epoch + 1)
        self._rewrite_sequences_locked()

    def _rewrite_sequences_locked(self) -> None:
        for partition in self._partitions_to_rewrite:
            self._partition_map.get_or_create(partition).start_sequences_at_beginning(
                self._producer_id_and_epoch
            )
            self._unresolved_sequences.pop(partition, None)
        self._partitions_to_rewrite.clear()
