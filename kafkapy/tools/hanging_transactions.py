"""Transactions that are open in a partition, but of which no coordinator knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kafkapy.clients.admin import AdminClient, ProducerState
from kafkapy.common.errors import TransactionalIdNotFoundError
from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import Time

_MS_PER_MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A producer's open transaction in one partition; `minutes`: since its last record."""

    topic_partition: TopicPartition
    producer: ProducerState
    minutes: int


class HangingTransactions:
    """The search for them. For one thread.

    Open longer than any transaction may be, it hangs if its coordinator does not have the
    partition in a transaction of the producer.

    Ports: org.apache.kafka.tools.TransactionsCommand.FindHangingTransactionsCommand
    """

    def __init__(self, admin: AdminClient, time: Time, max_timeout_minutes: int) -> None:
        # constant after construction
        self._admin = admin
        self._time = time
        self._max_timeout_ms = max_timeout_minutes * _MS_PER_MINUTE

    def find(
        self, *, topic: str | None, partition: int | None, broker_id: int | None
    ) -> list[OpenTransaction]:
        partitions = self._partitions(topic, partition, broker_id)
        candidates = self._long_open(partitions, broker_id)
        if not candidates:
            return []
        producer_ids = {candidate.producer.producer_id for candidate in candidates}
        known = self._known_partitions(producer_ids)
        return [
            candidate
            for candidate in candidates
            if candidate.topic_partition not in known.get(candidate.producer.producer_id, ())
        ]

    def _partitions(
        self, topic: str | None, partition: int | None, broker_id: int | None
    ) -> list[TopicPartition]:
        if topic is not None and partition is not None:
            return [TopicPartition(topic, partition)]
        topics = [topic] if topic is not None else self._admin.list_topics(list_internal=True)
        return [
            TopicPartition(described.name, info.partition)
            for described in self._admin.describe_topics(topics).values()
            for info in described.partitions
            if broker_id is None or any(node.id == broker_id for node in info.replicas)
        ]

    def _long_open(
        self, partitions: Iterable[TopicPartition], broker_id: int | None
    ) -> list[OpenTransaction]:
        now_ms = self._time.milliseconds()
        described = self._admin.describe_producers(partitions, broker_id=broker_id)
        return [
            OpenTransaction(
                partition, producer, (now_ms - producer.last_timestamp) // _MS_PER_MINUTE
            )
            for partition, producers in described.items()
            for producer in producers
            if producer.current_transaction_start_offset is not None
            and now_ms - producer.last_timestamp > self._max_timeout_ms
        ]

    def _known_partitions(self, producer_ids: set[int]) -> dict[int, frozenset[TopicPartition]]:
        """What the coordinators know to be in transactions of the producers."""
        listed = self._admin.list_transactions(producer_ids=producer_ids)
        ids = {listing.transactional_id: listing.producer_id for listing in listed}
        described = self._admin.describe_transactions(ids, raise_errors=False)
        for error in described.errors.values():
            # It may have expired since it was listed.
            if not isinstance(error, TransactionalIdNotFoundError):
                raise error
        return {
            ids[transactional_id]: description.topic_partitions
            for transactional_id, description in described.successes.items()
        }
