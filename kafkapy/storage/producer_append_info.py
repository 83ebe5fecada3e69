"""The changes that one append makes to one producer's state."""

import logging

from kafkapy.common.errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
)
from kafkapy.common.record.control_record import ControlRecordType, EndTransactionMarker
from kafkapy.common.record.record_batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, RecordBatch
from kafkapy.common.types import TopicPartition
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.producer_state_entry import BatchMetadata, ProducerStateEntry
from kafkapy.storage.transaction_index import CompletedTxn
from kafkapy.storage.verification_state_entry import VerificationStateEntry

logger = logging.getLogger(__name__)

_INT_MAX = (1 << 31) - 1


class TxnMetadata:
    """A transaction with data in the log; `last_offset` is set by its marker.

    Ports: org.apache.kafka.storage.internals.log.TxnMetadata
    """

    __slots__ = ("first_offset", "last_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: LogOffsetMetadata) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset: int | None = None


class ProducerAppendInfo:
    """Validates a producer's batches in order and collects what they change. Guarded by the log's
    lock.

    Nothing is visible to others until ProducerStateManager.update takes it over, so a batch that is
    refused leaves no trace.

    Ports: org.apache.kafka.storage.internals.log.ProducerAppendInfo
    """

    __slots__ = (
        "_current_entry",
        "_origin",
        "_topic_partition",
        "_verification_state",
        "producer_id",
        "started_transactions",
        "updated_entry",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        current_entry: ProducerStateEntry,
        origin: AppendOrigin,
        verification_state: VerificationStateEntry | None = None,
    ) -> None:
        self._verification_state = verification_state
        self._topic_partition = topic_partition
        self._current_entry = current_entry
        self._origin = origin
        self.producer_id = current_entry.producer_id
        self.updated_entry = current_entry.without_batches()
        self.started_transactions: list[TxnMetadata] = []

    def append(
        self, batch: RecordBatch, first_offset_metadata: LogOffsetMetadata | None = None
    ) -> CompletedTxn | None:
        """The transaction that the batch completes, if it is a marker for one with data."""
        if batch.is_control_batch:
            record = next(iter(batch.records()), None)
            if record is None:
                # Compaction has removed the marker: the whole transaction is gone.
                return None
            return self.append_end_txn_marker(
                EndTransactionMarker.deserialize(record),
                producer_epoch=batch.producer_epoch,
                offset=batch.base_offset,
                timestamp=record.timestamp,
            )
        self._append_data_batch(batch, first_offset_metadata)
        return None

    def append_end_txn_marker(
        self, marker: EndTransactionMarker, *, producer_epoch: int, offset: int, timestamp: int
    ) -> CompletedTxn | None:
        self._check_producer_epoch(producer_epoch, offset)
        self._check_coordinator_epoch(marker.coordinator_epoch, offset)
        first_offset = self.updated_entry.current_txn_first_offset
        self.updated_entry.end_transaction(
            producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            last_timestamp=timestamp,
        )
        if first_offset is None:
            # Without data it has no influence on the last stable offset.
            return None
        return CompletedTxn(
            self.producer_id,
            first_offset,
            offset,
            marker.control_type is ControlRecordType.ABORT,
        )

    def _append_data_batch(
        self, batch: RecordBatch, first_offset_metadata: LogOffsetMetadata | None
    ) -> None:
        epoch = batch.producer_epoch
        first_offset = batch.base_offset
        last_offset = batch.last_offset
        self._check_producer_epoch(epoch, first_offset)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(epoch, batch.base_sequence, first_offset)
        updated = self.updated_entry
        updated.add_batch(
            epoch,
            BatchMetadata(
                batch.last_sequence, last_offset, last_offset - first_offset, batch.max_timestamp
            ),
        )
        is_transactional = batch.is_transactional
        if updated.current_txn_first_offset is not None:
            if not is_transactional:
                raise InvalidTxnStateError(
                    f"{self._topic_partition}: producer {self.producer_id} has an open transaction "
                    f"since offset {updated.current_txn_first_offset}, but the batch is not "
                    "transactional"
                )
        elif is_transactional:
            updated.current_txn_first_offset = first_offset
            self.started_transactions.append(
                TxnMetadata(
                    self.producer_id, first_offset_metadata or LogOffsetMetadata(first_offset)
                )
            )

    def _check_producer_epoch(self, producer_epoch: int, offset: int) -> None:
        last_epoch = self.updated_entry.producer_epoch
        if producer_epoch >= last_epoch:
            return
        message = (
            f"{self._topic_partition}: producer {self.producer_id} at offset {offset} has epoch "
            f"{producer_epoch}, but epoch {last_epoch} has been seen"
        )
        if self._origin is not AppendOrigin.REPLICATION:
            raise InvalidProducerEpochError(message)
        # The leader has accepted it: a follower must not disagree.
        logger.warning(message)

    def _check_sequence(self, producer_epoch: int, first_seq: int, offset: int) -> None:
        updated = self.updated_entry
        current = self._current_entry
        verification = self._verification_state
        if verification is not None and first_seq > verification.lowest_sequence:
            # An earlier batch waits for the same verification and has not come back yet.
            raise OutOfOrderSequenceError(
                f"{self._topic_partition}: producer {self.producer_id} at offset {offset} sends "
                f"sequence number {first_seq}, but {verification.lowest_sequence} comes first"
            )
        if producer_epoch != updated.producer_epoch:
            if first_seq != 0 and updated.producer_epoch != NO_PRODUCER_EPOCH:
                raise OutOfOrderSequenceError(
                    f"{self._topic_partition}: producer {self.producer_id} at offset {offset} "
                    f"begins epoch {producer_epoch} (after {updated.producer_epoch}) with "
                    f"sequence number {first_seq}"
                )
            return
        if not updated.is_empty:
            last_seq = updated.last_seq
        elif producer_epoch == current.producer_epoch:
            last_seq = current.last_seq
        else:
            last_seq = NO_SEQUENCE
        # A producer whose records are all deleted is unknown and may go on with any number.
        if current.producer_epoch != NO_PRODUCER_EPOCH and not _in_sequence(last_seq, first_seq):
            raise OutOfOrderSequenceError(
                f"{self._topic_partition}: producer {self.producer_id} at offset {offset} sends "
                f"sequence number {first_seq} after {last_seq}"
            )

    def _check_coordinator_epoch(self, coordinator_epoch: int, offset: int) -> None:
        if self.updated_entry.coordinator_epoch <= coordinator_epoch:
            return
        message = (
            f"{self._topic_partition}: the marker of producer {self.producer_id} at offset "
            f"{offset} comes from coordinator epoch {coordinator_epoch}, but epoch "
            f"{self.updated_entry.coordinator_epoch} has been seen"
        )
        if self._origin is not AppendOrigin.REPLICATION:
            raise TransactionCoordinatorFencedError(message)
        logger.info(message)


def _in_sequence(last_seq: int, next_seq: int) -> bool:
    return next_seq == last_seq + 1 or (next_seq == 0 and last_seq == _INT_MAX)
