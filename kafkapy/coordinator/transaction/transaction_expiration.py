"""Forgetting transactional ids that nobody has used for long."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkapy.common.errors import Errors
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord
from kafkapy.common.types import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.transaction import transaction_log
from kafkapy.coordinator.transaction.transaction_coordinator_config import (
    TransactionCoordinatorConfig,
)
from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.replication.partition_response import PartitionResponse
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.utils.time import Time

if TYPE_CHECKING:
    from kafkapy.coordinator.transaction.transaction_state_manager import TransactionStateManager

logger = logging.getLogger(__name__)

# What a tombstone adds to its key in a batch, and more.
_RECORD_OVERHEAD_BYTES = 64
_BATCH_OVERHEAD_BYTES = 128


class TransactionExpiration:
    """Writes tombstones for expired transactional ids, then removes them. One thread at a time.

    Ports: kafka.coordinator.transaction.TransactionStateManager (removeExpiredTransactionalIds)
    """

    def __init__(
        self,
        state_manager: TransactionStateManager,
        config: TransactionCoordinatorConfig,
        replica_manager: ReplicaManager,
        time: Time,
        *,
        request_timeout_ms: int,
    ) -> None:
        self._state_manager = state_manager
        self._expiration_ms = config.transactional_id_expiration_ms
        self._replica_manager = replica_manager
        self._time = time
        self._request_timeout_ms = request_timeout_ms

    def remove_expired_transactional_ids(self) -> None:
        for partition in self._state_manager.partitions():
            self._remove_expired_of(partition)
        self._replica_manager.try_complete_actions()

    def _remove_expired_of(self, partition: int) -> None:
        topic_partition = TopicPartition(TRANSACTION_STATE_TOPIC, partition)
        log_config = self._replica_manager.get_log_config(topic_partition)
        # Until the tombstones are appended the partition must not change hands.
        with self._state_manager.state_lock.read():
            found = self._state_manager.transactions_of(partition)
            if found is None or log_config is None:
                return
            now_ms = self._time.milliseconds()
            room = log_config.max_message_bytes - _BATCH_OVERHEAD_BYTES
            expired: list[TransactionMetadata] = []
            tombstones: list[SimpleRecord] = []
            for metadata in found[1]:
                key = transaction_log.key_to_bytes(metadata.transactional_id)
                with metadata.lock:
                    if not self._should_expire(metadata, now_ms):
                        continue
                    if tombstones and len(key) + _RECORD_OVERHEAD_BYTES > room:
                        break  # the rest at the next round
                    metadata.prepare_dead()
                room -= len(key) + _RECORD_OVERHEAD_BYTES
                expired.append(metadata)
                tombstones.append(SimpleRecord(now_ms, key, None))
            if not tombstones:
                return

            def on_appended(responses: dict[TopicPartition, PartitionResponse]) -> None:
                self._on_appended(partition, expired, responses[topic_partition].error)

            self._replica_manager.append_records(
                timeout_ms=self._request_timeout_ms,
                required_acks=-1,
                internal_topics_allowed=True,
                origin=AppendOrigin.COORDINATOR,
                entries_per_partition={topic_partition: MemoryRecords.with_records(*tombstones)},
                response_callback=on_appended,
            )

    def _should_expire(self, metadata: TransactionMetadata, now_ms: int) -> bool:
        return (
            metadata.pending_state is None
            and metadata.state.is_expiration_allowed
            and metadata.txn_last_update_timestamp <= now_ms - self._expiration_ms
        )

    def _on_appended(
        self, partition: int, expired: list[TransactionMetadata], error: Errors
    ) -> None:
        for metadata in expired:
            with metadata.lock:
                if error is not Errors.NONE:
                    metadata.pending_state = None
                    continue
                if metadata.pending_state is not TransactionState.DEAD:
                    continue
            self._state_manager.remove_transaction(partition, metadata)
        if error is Errors.NONE:
            logger.info("Removed %d expired transactional ids", len(expired))
        else:
            logger.warning("Expired transactional ids are kept for now: %s", error.name)
