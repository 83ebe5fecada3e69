"""Whether transactional records may be appended: their coordinator must know of the partition."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from kafkapy.common.errors import ApiError, Errors, InvalidPidMappingError
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record_batch import NO_SEQUENCE
from kafkapy.common.types import TopicPartition
from kafkapy.replication.delayed_produce import ProduceCallback
from kafkapy.replication.partition_response import PartitionResponse
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.verification_state_entry import VerificationGuard

VerificationErrors = Mapping[TopicPartition, Errors]
VerificationCallback = Callable[
    [VerificationErrors, Mapping[TopicPartition, VerificationGuard]], None
]

# Older clients would not try a produce again after these; after NOT_ENOUGH_REPLICAS they do, and
# without asking for metadata first.
_RETRIABLE = (
    Errors.CONCURRENT_TRANSACTIONS,
    Errors.NETWORK_EXCEPTION,
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
)


class TransactionVerifier(Protocol):
    """Asks the coordinator of a transaction.

    Ports: kafka.server.AddPartitionsToTxnManager (verifyTransaction)
    """

    def verify_transaction(
        self,
        transactional_id: str,
        *,
        producer_id: int,
        producer_epoch: int,
        topic_partitions: Collection[TopicPartition],
        supports_abortable_error: bool,
        callback: Callable[[VerificationErrors], None],
    ) -> None:
        """Calls back, now or later, with the partitions that are not in the transaction."""
        ...


class TransactionVerification:
    """Verifies a transaction's first append to each partition (KIP-890). Thread-safe.

    The guard is taken before the coordinator is asked and goes with the append. A marker that
    comes in between takes it away, so that nothing is appended to a transaction that has ended.

    Ports: kafka.server.ReplicaManager (handleProduceAppend)
    """

    def __init__(
        self,
        replica_manager: ReplicaManager,
        verifier: TransactionVerifier,
        is_enabled: Callable[[], bool],
    ) -> None:
        self._replica_manager = replica_manager
        self._verifier = verifier
        self._is_enabled = is_enabled  # may change its answer at any time

    def handle_produce_append(
        self,
        transactional_id: str,
        *,
        timeout_ms: int,
        required_acks: int,
        internal_topics_allowed: bool,
        entries_per_partition: Mapping[TopicPartition, MemoryRecords],
        supports_abortable_error: bool,
        response_callback: ProduceCallback,
    ) -> None:
        """Appends what a client has sent, the transactional part of it once it is verified.

        Raises InvalidPidMappingError if it is of several producers.
        """
        producers: set[tuple[int, int]] = set()
        base_sequences: dict[TopicPartition, int] = {}
        for topic_partition, records in entries_per_partition.items():
            for batch in records.batches():
                if batch.is_transactional and batch.has_producer_id:
                    producers.add((batch.producer_id, batch.producer_epoch))
                    base_sequences.setdefault(topic_partition, batch.base_sequence)
        if len(producers) > 1:
            raise InvalidPidMappingError("Transactional records have more than one producer id")

        def append(
            errors: VerificationErrors, guards: Mapping[TopicPartition, VerificationGuard]
        ) -> None:
            refused = {tp: _refusal(error) for tp, error in errors.items()}
            self._replica_manager.append_records(
                timeout_ms=timeout_ms,
                required_acks=required_acks,
                internal_topics_allowed=internal_topics_allowed,
                origin=AppendOrigin.CLIENT,
                entries_per_partition={
                    tp: records
                    for tp, records in entries_per_partition.items()
                    if tp not in refused
                },
                response_callback=lambda appended: response_callback({**refused, **appended}),
                verification_guards=guards,
            )

        if not producers:
            append({}, {})
            return
        ((producer_id, producer_epoch),) = producers
        self._maybe_start(
            transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequences=base_sequences,
            supports_abortable_error=supports_abortable_error,
            callback=append,
        )

    def maybe_start_for_partition(
        self,
        topic_partition: TopicPartition,
        transactional_id: str,
        *,
        producer_id: int,
        producer_epoch: int,
        supports_abortable_error: bool,
        callback: Callable[[Errors, VerificationGuard], None],
    ) -> None:
        """For records that a coordinator of this broker is about to append."""
        self._maybe_start(
            transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequences={topic_partition: NO_SEQUENCE},
            supports_abortable_error=supports_abortable_error,
            callback=lambda errors, guards: callback(
                errors.get(topic_partition, Errors.NONE),
                guards.get(topic_partition, VerificationGuard.SENTINEL),
            ),
        )

    def _maybe_start(
        self,
        transactional_id: str,
        *,
        producer_id: int,
        producer_epoch: int,
        base_sequences: Mapping[TopicPartition, int],
        supports_abortable_error: bool,
        callback: VerificationCallback,
    ) -> None:
        errors: dict[TopicPartition, Errors] = {}
        guards: dict[TopicPartition, VerificationGuard] = {}
        if self._is_enabled():
            for topic_partition, sequence in base_sequences.items():
                try:
                    partition = self._replica_manager.get_partition_or_raise(topic_partition)
                    guard = partition.maybe_start_transaction_verification(
                        producer_id, sequence=sequence, epoch=producer_epoch
                    )
                except ApiError as e:
                    errors[topic_partition] = Errors.for_exception(e)
                    continue
                if guard is not VerificationGuard.SENTINEL:
                    guards[topic_partition] = guard
        if not guards:
            callback(errors, guards)
            return
        self._verifier.verify_transaction(
            transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            topic_partitions=list(guards),
            supports_abortable_error=supports_abortable_error,
            callback=lambda unverified: callback({**errors, **unverified}, guards),
        )


def _refusal(error: Errors) -> PartitionResponse:
    if error in _RETRIABLE:
        return PartitionResponse(
            Errors.NOT_ENOUGH_REPLICAS,
            error_message="The partition could not be verified to be in the transaction: "
            f"{error.name}",
        )
    if error is Errors.INVALID_TXN_STATE:
        return PartitionResponse(
            error, error_message="The partition was not added to the transaction"
        )
    return PartitionResponse(error)
