"""What becomes of markers when their request is answered, or is not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.write_txn_markers import WriteTxnMarkersResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.transaction_state_manager import (
    CoordinatorEpochAndTxnMetadata,
    TransactionStateManager,
)

if TYPE_CHECKING:
    from kafkapy.coordinator.transaction.transaction_marker_channel_manager import (
        PendingMarker,
        TransactionMarkerChannelManager,
    )

logger = logging.getLogger(__name__)

# Written, or never to be: the partition's format is too old for markers.
_SETTLED = (Errors.NONE, Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT, Errors.UNSUPPORTED_VERSION)
# Somebody with a later epoch has taken over.
_FENCED = (Errors.INVALID_PRODUCER_EPOCH, Errors.TRANSACTION_COORDINATOR_FENCED)
_EXPECTED_RETRIES = (
    Errors.UNKNOWN_TOPIC_OR_PARTITION,
    Errors.NOT_LEADER_OR_FOLLOWER,
    Errors.NOT_ENOUGH_REPLICAS,
    Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    Errors.REQUEST_TIMED_OUT,
    Errors.KAFKA_STORAGE_ERROR,
)


class TransactionMarkerRequestCompletionHandler:
    """Takes partitions whose marker is written out of their transactions; retries the others.

    Ports: kafka.coordinator.transaction.TransactionMarkerRequestCompletionHandler
    """

    def __init__(
        self,
        broker_id: int,
        state_manager: TransactionStateManager,
        channel_manager: TransactionMarkerChannelManager,
        markers: Sequence[PendingMarker],
    ) -> None:
        self._broker_id = broker_id
        self._state_manager = state_manager
        self._channel_manager = channel_manager
        self._markers = markers

    def on_complete(self, response: Message | None) -> None:
        errors: dict[tuple[int, TopicPartition], Errors] = {}
        if isinstance(response, WriteTxnMarkersResponse):
            errors = {
                (marker.producer_id, TopicPartition(topic.name, partition.partition_index)): (
                    Errors.for_code(partition.error_code)
                )
                for marker in response.markers
                for topic in marker.topics
                for partition in topic.partitions
            }
        for marker in self._markers:
            self._on_answer(marker, errors)

    def _on_answer(
        self, marker: PendingMarker, errors: dict[tuple[int, TopicPartition], Errors]
    ) -> None:
        txn = marker.txn
        found = self._state_manager.get_transaction_state(txn.transactional_id)
        if (
            not isinstance(found, CoordinatorEpochAndTxnMetadata)
            or found.coordinator_epoch != txn.coordinator_epoch
        ):
            logger.info("The markers of %s are left to another coordinator", txn.transactional_id)
            self._channel_manager.remove_markers_for_txn(txn)
            return
        retry: set[TopicPartition] = set()
        with txn.txn_metadata.lock:
            for topic_partition in marker.topic_partitions:
                # A request without an answer may have been carried out: writing it again is safe.
                error = errors.get((marker.producer_id, topic_partition), Errors.REQUEST_TIMED_OUT)
                if error in _SETTLED:
                    txn.txn_metadata.remove_partition(topic_partition)
                elif error in _FENCED:
                    logger.info(
                        "The markers of %s are given up: %s from broker %d",
                        txn.transactional_id,
                        error.name,
                        self._broker_id,
                    )
                    self._channel_manager.remove_markers_for_txn(txn)
                    return
                else:
                    if error not in _EXPECTED_RETRIES:
                        logger.error(
                            "The marker of %s for %s met with %s at broker %d",
                            txn.transactional_id,
                            topic_partition,
                            error.name,
                            self._broker_id,
                        )
                    retry.add(topic_partition)
        if retry:
            self._channel_manager.retry_later(marker.for_partitions(retry))
        else:
            self._channel_manager.maybe_write_txn_completion(txn)
