"""The sequence numbers of an idempotent producer, by partition."""

from __future__ import annotations

from sortedcontainers import SortedKeyList

from kafkapy.clients.producer.producer_batch import ProducerBatch
from kafkapy.clients.producer.producer_id_and_epoch import (
    NO_PRODUCER_ID_AND_EPOCH,
    ProducerIdAndEpoch,
)
from kafkapy.clients.producer.record_metadata import UNKNOWN_OFFSET
from kafkapy.common.record.record_batch import NO_SEQUENCE, increment_sequence
from kafkapy.common.types import TopicPartition

NO_LAST_ACKED_SEQUENCE = -1


class TxnPartitionEntry:
    """One partition: the next sequence, the last one acknowledged, the batches in flight.

    Guarded by the transaction manager's lock.

    Ports: org.apache.kafka.clients.producer.internals.TxnPartitionEntry
    """

    __slots__ = (
        "in_flight",
        "last_acked_offset",
        "last_acked_sequence",
        "next_sequence",
        "producer_id_and_epoch",
    )

    def __init__(self) -> None:
        self.producer_id_and_epoch = NO_PRODUCER_ID_AND_EPOCH
        self.next_sequence = 0
        self.last_acked_sequence = NO_LAST_ACKED_SEQUENCE
        self.last_acked_offset = UNKNOWN_OFFSET
        # By id, epoch and sequence: batches of an old epoch come first.
        self.in_flight: SortedKeyList[ProducerBatch, tuple[int, int, int]] = _new_in_flight()

    @property
    def first_in_flight_sequence(self) -> int:
        return self.in_flight[0].base_sequence if self.in_flight else NO_SEQUENCE

    def start_sequences_at_beginning(self, new_identity: ProducerIdAndEpoch) -> None:
        """Number what is in flight from 0, for a producer the broker has not seen before."""
        sequence = 0
        rewritten = _new_in_flight()
        for batch in self.in_flight:
            batch.reset_producer_state(new_identity.producer_id, new_identity.epoch, sequence)
            sequence = increment_sequence(sequence, batch.record_count)
            rewritten.add(batch)
        self.in_flight = rewritten
        self.producer_id_and_epoch = new_identity
        self.next_sequence = sequence
        self.last_acked_sequence = NO_LAST_ACKED_SEQUENCE

    def adjust_sequences_due_to_failed_batch(self, failed: ProducerBatch) -> None:
        """Close the gap that a failed batch leaves before those sent after it."""
        self.next_sequence -= failed.record_count
        rewritten = _new_in_flight()
        for batch in self.in_flight:
            if batch.base_sequence >= failed.base_sequence:
                sequence = batch.base_sequence - failed.record_count
                if sequence < 0:
                    raise ValueError(f"sequence of {batch} would become negative: {sequence}")
                batch.reset_producer_state(batch.producer_id, batch.producer_epoch, sequence)
            rewritten.add(batch)
        self.in_flight = rewritten


def _new_in_flight() -> SortedKeyList[ProducerBatch, tuple[int, int, int]]:
    return SortedKeyList(
        key=lambda batch: (batch.producer_id, batch.producer_epoch, batch.base_sequence)
    )


class TxnPartitionMap:
    """Guarded by the transaction manager's lock.

    Ports: org.apache.kafka.clients.producer.internals.TxnPartitionMap
    """

    def __init__(self) -> None:
        self._entries: dict[TopicPartition, TxnPartitionEntry] = {}

    def get(self, partition: TopicPartition) -> TxnPartitionEntry | None:
        return self._entries.get(partition)

    def get_or_create(self, partition: TopicPartition) -> TxnPartitionEntry:
        entry = self._entries.get(partition)
        if entry is None:
            entry = self._entries[partition] = TxnPartitionEntry()
        return entry

    def reset(self) -> None:
        self._entries.clear()

    def has_in_flight_batches(self, partition: TopicPartition) -> bool:
        entry = self._entries.get(partition)
        return entry is not None and len(entry.in_flight) > 0

    def remove_in_flight_batch(self, batch: ProducerBatch) -> None:
        entry = self._entries.get(batch.topic_partition)
        if entry is not None:
            entry.in_flight.discard(batch)

    def last_acked_sequence(self, partition: TopicPartition) -> int:
        entry = self._entries.get(partition)
        return NO_LAST_ACKED_SEQUENCE if entry is None else entry.last_acked_sequence

    def maybe_update_last_acked_sequence(self, batch: ProducerBatch) -> None:
        entry = self._entries.get(batch.topic_partition)
        # A reset may have started the partition over while the batch was under way.
        if entry is not None and batch.last_sequence > entry.last_acked_sequence:
            entry.last_acked_sequence = batch.last_sequence

    def update_last_acked_offset(self, batch: ProducerBatch, base_offset: int) -> None:
        """Not for duplicates, whose offset the broker may not know."""
        entry = self._entries.get(batch.topic_partition)
        if entry is not None and base_offset != UNKNOWN_OFFSET:
            last_offset = base_offset + batch.record_count - 1
            entry.last_acked_offset = max(entry.last_acked_offset, last_offset)
