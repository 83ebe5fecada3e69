"""What a partition remembers about one producer."""

from collections import deque
from typing import NamedTuple

from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.common.record.record_batch import (
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    RecordBatch,
    decrement_sequence,
)

# A client has at most five requests in flight, so a duplicate is one of the last five batches.
NUM_BATCHES_TO_RETAIN = 5
NO_COORDINATOR_EPOCH = -1


class BatchMetadata(NamedTuple):
    """A batch as far as detecting its duplicate needs it.

    Ports: org.apache.kafka.storage.internals.log.BatchMetadata
    """

    last_seq: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_seq(self) -> int:
        return decrement_sequence(self.last_seq, self.offset_delta)

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class LastRecord(NamedTuple):
    """The last thing a producer has written; without a data offset that was a marker.

    Ports: org.apache.kafka.storage.internals.log.LastRecord
    """

    last_data_offset: int | None
    producer_epoch: int


class ProducerStateEntry:
    """The latest batches, epoch and open transaction of a producer. Guarded by the log's lock.

    Ports: org.apache.kafka.storage.internals.log.ProducerStateEntry
    """

    __slots__ = (
        "batch_metadata",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        *,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
        last_timestamp: int = NO_TIMESTAMP,
        current_txn_first_offset: int | None = None,
        first_batch: BatchMetadata | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        self.batch_metadata: deque[BatchMetadata] = deque(
            () if first_batch is None else (first_batch,), NUM_BATCHES_TO_RETAIN
        )

    @property
    def is_empty(self) -> bool:
        return not self.batch_metadata

    @property
    def first_seq(self) -> int:
        return self.batch_metadata[0].first_seq if self.batch_metadata else NO_SEQUENCE

    @property
    def last_seq(self) -> int:
        return self.batch_metadata[-1].last_seq if self.batch_metadata else NO_SEQUENCE

    @property
    def first_data_offset(self) -> int:
        return self.batch_metadata[0].first_offset if self.batch_metadata else -1

    @property
    def last_data_offset(self) -> int:
        return self.batch_metadata[-1].last_offset if self.batch_metadata else -1

    @property
    def last_offset_delta(self) -> int:
        return self.batch_metadata[-1].offset_delta if self.batch_metadata else 0

    def without_batches(self) -> "ProducerStateEntry":
        """A copy to collect the changes of one append in."""
        return ProducerStateEntry(
            self.producer_id,
            producer_epoch=self.producer_epoch,
            coordinator_epoch=self.coordinator_epoch,
            last_timestamp=self.last_timestamp,
            current_txn_first_offset=self.current_txn_first_offset,
        )

    def add_batch(self, producer_epoch: int, batch: BatchMetadata) -> None:
        self.maybe_update_producer_epoch(producer_epoch)
        self.batch_metadata.append(batch)
        self.last_timestamp = batch.timestamp

    def end_transaction(
        self, producer_epoch: int, *, coordinator_epoch: int, last_timestamp: int
    ) -> None:
        self.maybe_update_producer_epoch(producer_epoch)
        self.current_txn_first_offset = None
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp

    def update(self, next_entry: "ProducerStateEntry") -> None:
        """Takes over what one append has collected."""
        self.maybe_update_producer_epoch(next_entry.producer_epoch)
        self.batch_metadata.extend(next_entry.batch_metadata)
        self.coordinator_epoch = next_entry.coordinator_epoch
        self.current_txn_first_offset = next_entry.current_txn_first_offset
        self.last_timestamp = next_entry.last_timestamp

    def maybe_update_producer_epoch(self, producer_epoch: int) -> bool:
        """A new epoch starts its sequence numbers anew."""
        if self.producer_epoch == producer_epoch:
            return False
        self.batch_metadata.clear()
        self.producer_epoch = producer_epoch
        return True

    def find_duplicate_batch(self, batch: RecordBatch) -> BatchMetadata | None:
        """The batch already appended that this one repeats."""
        if batch.producer_epoch != self.producer_epoch:
            return None
        last_seq = batch.last_sequence
        for known in self.batch_metadata:
            if known.last_seq == last_seq and known.first_seq == batch.base_sequence:
                return known
        return None
