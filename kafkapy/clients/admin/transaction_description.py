"""Transactions and producers as brokers describe them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kafkapy.common.types import TopicPartition


class TransactionState(Enum):
    """Ports: org.apache.kafka.clients.admin.TransactionState"""

    ONGOING = "Ongoing"
    PREPARE_ABORT = "PrepareAbort"
    PREPARE_COMMIT = "PrepareCommit"
    COMPLETE_ABORT = "CompleteAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    EMPTY = "Empty"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    UNKNOWN = "Unknown"

    @classmethod
    def _missing_(cls, value: object) -> TransactionState:
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ProducerState:
    """An idempotent producer in one partition; -1 and None stand for what it has not done yet.

    Ports: org.apache.kafka.clients.admin.ProducerState
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


@dataclass(frozen=True, slots=True)
class TransactionDescription:
    """Ports: org.apache.kafka.clients.admin.TransactionDescription"""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class TransactionListing:
    """A transaction in a list, with the broker that coordinates it.

    Ports: org.apache.kafka.clients.admin.TransactionListing
    """

    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator_id: int


@dataclass(frozen=True, slots=True)
class AbortTransactionSpec:
    """The open transaction of a producer in one partition, as describe_producers shows it.

    Ports: org.apache.kafka.clients.admin.AbortTransactionSpec
    """

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class ProducerIdAndEpoch(NamedTuple):
    """Ports: org.apache.kafka.common.utils.ProducerIdAndEpoch"""

    producer_id: int
    epoch: int
