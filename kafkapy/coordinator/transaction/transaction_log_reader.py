"""Reading a partition of __transaction_state back into memory."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.record.record_batch import RecordBatch
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction import transaction_log
from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.storage.fetch_isolation import FetchIsolation

logger = logging.getLogger(__name__)


class TransactionLogReader:
    """The latest state of every transactional id in a partition's log.

    Ports: kafka.coordinator.transaction.TransactionStateManager (loadTransactionMetadata)
    """

    def __init__(self, replica_manager: ReplicaManager, *, buffer_size: int) -> None:
        self._replica_manager = replica_manager
        self._buffer_size = buffer_size

    def load(
        self, topic_partition: TopicPartition, is_wanted: Callable[[], bool]
    ) -> dict[str, TransactionMetadata]:
        """Stops early, with what it has, once it is not wanted any more."""
        loaded: dict[str, TransactionMetadata] = {}
        log = self._replica_manager.get_log(topic_partition)
        if log is None:
            logger.warning("There is no log of %s to load transactions from", topic_partition)
            return loaded
        offset = log.log_start_offset
        # The leader's own log up to its end: nothing of it can be taken back any more.
        while offset < log.log_end_offset and is_wanted():
            data = log.read(offset, self._buffer_size, FetchIsolation.LOG_END, min_one_message=True)
            next_offset = offset
            for batch in data.records.batches():
                self._apply(batch, topic_partition, loaded)
                next_offset = batch.next_offset
            if next_offset == offset:
                break
            offset = next_offset
        return loaded

    def _apply(
        self,
        batch: RecordBatch,
        topic_partition: TopicPartition,
        loaded: dict[str, TransactionMetadata],
    ) -> None:
        for record in batch.records():
            try:
                if record.key is None:
                    raise ProtocolError("a record without a key")
                transactional_id = transaction_log.read_key(record.key)
                if record.value is None:
                    loaded.pop(transactional_id, None)
                else:
                    loaded[transactional_id] = transaction_log.read_value(
                        transactional_id, record.value
                    )
            except ProtocolError as e:
                # One record nobody can read must not keep all other transactions from ending.
                logger.error("Offset %d of %s is skipped: %s", record.offset, topic_partition, e)
