"""Sending the decision about a transaction to the leaders of its partitions."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Protocol

from kafkapy.clients.inter_broker_send_thread import GenerateRequest, RequestAndCompletionHandler
from kafkapy.common.errors import Errors
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.common.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.transaction_marker_completion import (
    TransactionMarkerRequestCompletionHandler,
)
from kafkapy.coordinator.transaction.transaction_metadata import (
    TransactionMetadata,
    TxnTransitMetadata,
)
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.coordinator.transaction.transaction_state_manager import (
    CoordinatorEpochAndTxnMetadata,
    TransactionStateManager,
)
from kafkapy.metadata.broker import NO_NODE, Node
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.utils.scheduler import Scheduler

logger = logging.getLogger(__name__)

UNKNOWN_DESTINATION_QUEUE_SIZE = Gauge(
    "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,"
    "name=UnknownDestinationQueueSize",
    "Transaction markers that wait for their partition to have a leader.",
)
LOG_APPEND_RETRY_QUEUE_SIZE = Gauge(
    "kafka.coordinator.transaction:type=TransactionMarkerChannelManager,"
    "name=LogAppendRetryQueueSize",
    "Completed transactions that could not be written to __transaction_state yet.",
)

WRITE_TXN_MARKERS_VERSION = 1
RETRY_BACKOFF_MS = 100
# Then somebody else is the coordinator: it will finish what is left.
NO_LONGER_COORDINATOR = (Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS)


class MarkerSender(Protocol):
    """What of InterBrokerSendThread is needed here."""

    def start(self) -> None: ...

    def wakeup(self) -> None: ...

    def initiate_shutdown(self) -> bool: ...

    def await_shutdown(self) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class PendingCompleteTxn:
    """A transaction that is complete once all its markers are written.

    Ports: kafka.coordinator.transaction.PendingCompleteTxn
    """

    transactional_id: str
    txn_partition: int
    coordinator_epoch: int
    txn_metadata: TransactionMetadata
    new_metadata: TxnTransitMetadata


@dataclass(frozen=True, slots=True)
class PendingMarker:
    """The marker for some partitions of a transaction, on its way.

    Ports: kafka.coordinator.transaction.PendingCompleteTxnAndMarkerEntry
    """

    txn: PendingCompleteTxn
    producer_id: int
    producer_epoch: int
    result: TransactionResult
    topic_partitions: frozenset[TopicPartition]

    def for_partitions(self, topic_partitions: Collection[TopicPartition]) -> PendingMarker:
        return replace(self, topic_partitions=frozenset(topic_partitions))


class _Destination:
    """The markers for one broker; guarded by the manager's lock.

    Ports: kafka.coordinator.transaction.TxnMarkerQueue
    """

    __slots__ = ("markers", "node", "sender")

    def __init__(self, node: Node, sender: MarkerSender) -> None:
        self.node = node
        self.sender = sender
        self.markers: list[PendingMarker] = []


class TransactionMarkerChannelManager:
    """Delivers markers until each is written, then completes their transactions. Thread-safe.

    Markers travel as requests even to this broker itself. One that cannot be delivered is tried
    again after a backoff, at whichever broker leads its partition then. Its lock is never held
    while others are taken.

    Ports: kafka.coordinator.transaction.TransactionMarkerChannelManager
    """

    def __init__(
        self,
        state_manager: TransactionStateManager,
        metadata_cache: MetadataCache,
        *,
        scheduler: Scheduler,
        metrics: MetricsRegistry,
        inter_broker_listener_name: str,
        new_sender: Callable[[Node, GenerateRequest], MarkerSender],
        partition_exists: Callable[[TopicPartition], bool],
    ) -> None:
        # constant after construction
        self._state_manager = state_manager
        self._metadata_cache = metadata_cache
        self._scheduler = scheduler
        self._metrics = metrics
        self._listener_name = inter_broker_listener_name
        self._new_sender = new_sender
        self._partition_exists = partition_exists
        self._lock = threading.Lock()
        # guarded by self._lock
        self._destinations: dict[int, _Destination] = {}
        self._senders: list[MarkerSender] = []  # all ever started
        self._unsent: list[PendingMarker] = []  # to be tried again
        self._append_retries: list[PendingCompleteTxn] = []
        self._pending_txns: dict[str, PendingCompleteTxn] = {}
        self._retry_scheduled = False
        self._shut_down = False

    def start(self) -> None:
        self._metrics.gauge(UNKNOWN_DESTINATION_QUEUE_SIZE, lambda: len(self._unsent))
        self._metrics.gauge(LOG_APPEND_RETRY_QUEUE_SIZE, lambda: len(self._append_retries))

    def shutdown(self) -> None:
        """Markers not delivered yet are sent again by the next coordinator."""
        with self._lock:
            self._shut_down = True
            senders, self._senders = self._senders, []
            self._destinations.clear()
        for sender in senders:
            sender.initiate_shutdown()
        for sender in senders:
            sender.await_shutdown()
        self._metrics.remove(UNKNOWN_DESTINATION_QUEUE_SIZE)
        self._metrics.remove(LOG_APPEND_RETRY_QUEUE_SIZE)

    def add_txn_markers_to_send(
        self,
        coordinator_epoch: int,
        result: TransactionResult,
        txn_metadata: TransactionMetadata,
        new_metadata: TxnTransitMetadata,
    ) -> None:
        """`new_metadata` is written to the log when all partitions have their marker."""
        transactional_id = txn_metadata.transactional_id
        txn = PendingCompleteTxn(
            transactional_id,
            self._state_manager.partition_for(transactional_id),
            coordinator_epoch,
            txn_metadata,
            new_metadata,
        )
        with txn_metadata.lock:
            marker = PendingMarker(
                txn,
                txn_metadata.producer_id,
                txn_metadata.producer_epoch,
                result,
                frozenset(txn_metadata.topic_partitions),
            )
        with self._lock:
            if self._pending_txns.get(transactional_id) is not None:
                logger.info("The markers of %s replace earlier ones", transactional_id)
            self._pending_txns[transactional_id] = txn
        self.enqueue(marker)
        self.maybe_write_txn_completion(txn)

    def enqueue(self, marker: PendingMarker) -> None:
        """To the leaders of its partitions, or to be tried later if there are none now."""
        by_leader: dict[Node | None, set[TopicPartition]] = {}
        for topic_partition in marker.topic_partitions:
            leader = self._metadata_cache.get_partition_leader_endpoint(
                *topic_partition, self._listener_name
            )
            by_leader.setdefault(None if leader == NO_NODE else leader, set()).add(topic_partition)
        for node, topic_partitions in by_leader.items():
            part = marker.for_partitions(topic_partitions)
            if node is None:
                self.retry_later(part)
            else:
                self._enqueue_for(node, part)

    def _enqueue_for(self, node: Node, marker: PendingMarker) -> None:
        with self._lock:
            if self._shut_down:
                return
            destination = self._destinations.get(node.id)
            if destination is None or destination.node != node:
                previous = destination
                destination = self._new_destination_locked(node)
                if previous is not None:
                    # The broker has come back under another address.
                    destination.markers = previous.markers
                    previous.sender.initiate_shutdown()
            destination.markers.append(marker)
            sender = destination.sender
        sender.wakeup()

    def _new_destination_locked(self, node: Node) -> _Destination:
        sender = self._new_sender(node, lambda: self._next_request(node.id))
        destination = self._destinations[node.id] = _Destination(node, sender)
        self._senders.append(sender)
        sender.start()
        return destination

    def _next_request(self, broker_id: int) -> RequestAndCompletionHandler | None:
        """All markers that wait for a broker, in one request."""
        with self._lock:
            destination = self._destinations.get(broker_id)
            if destination is None or not destination.markers:
                return None
            markers, destination.markers = destination.markers, []
        return RequestAndCompletionHandler(
            WriteTxnMarkersRequest(markers=[_to_request(marker) for marker in markers]),
            WRITE_TXN_MARKERS_VERSION,
            TransactionMarkerRequestCompletionHandler(
                broker_id, self._state_manager, self, markers
            ).on_complete,
        )

    def retry_later(self, marker: PendingMarker) -> None:
        with self._lock:
            self._unsent.append(marker)
        self._ensure_retry_scheduled()

    def _ensure_retry_scheduled(self) -> None:
        with self._lock:
            if self._retry_scheduled or self._shut_down:
                return
            self._retry_scheduled = True
        self._scheduler.schedule_once("transaction-marker-retry", self._retry, RETRY_BACKOFF_MS)

    def _retry(self) -> None:
        with self._lock:
            self._retry_scheduled = False
            unsent, self._unsent = self._unsent, []
            appends, self._append_retries = self._append_retries, []
        for txn in appends:
            self._write_txn_completion(txn)
        for marker in unsent:
            if self._is_current(marker.txn):
                remaining = self._without_deleted_partitions(marker)
                if remaining.topic_partitions:
                    self.enqueue(remaining)

    def _without_deleted_partitions(self, marker: PendingMarker) -> PendingMarker:
        """Without those that need no marker any more.

        The metadata cache alone does not tell: a broker that has just started becomes coordinator
        before it hears of all topics, and a partition left out then would hang for good.
        """
        gone = {
            topic_partition
            for topic_partition in marker.topic_partitions
            if not self._metadata_cache.contains(topic_partition)
            and not self._partition_exists(topic_partition)
        }
        if not gone:
            return marker
        logger.info(
            "%s is left without a marker in %s, which were deleted",
            marker.txn.transactional_id,
            sorted(gone),
        )
        with marker.txn.txn_metadata.lock:
            for topic_partition in gone:
                marker.txn.txn_metadata.remove_partition(topic_partition)
        self.maybe_write_txn_completion(marker.txn)
        return marker.for_partitions(marker.topic_partitions - gone)

    def _is_current(self, txn: PendingCompleteTxn) -> bool:
        """Whether it still has to be completed here."""
        with self._lock:
            return self._pending_txns.get(txn.transactional_id) is txn

    def remove_markers_for_txn(self, txn: PendingCompleteTxn) -> None:
        """Somebody else completes the transaction."""
        with self._lock:
            if self._pending_txns.get(txn.transactional_id) is txn:
                del self._pending_txns[txn.transactional_id]

    def remove_markers_for_txn_topic_partition(self, txn_partition: int) -> None:
        """This broker is not the coordinator of these transactions any more."""
        with self._lock:
            self._unsent = [m for m in self._unsent if m.txn.txn_partition != txn_partition]
            for destination in self._destinations.values():
                destination.markers = [
                    m for m in destination.markers if m.txn.txn_partition != txn_partition
                ]
            self._append_retries = [
                txn for txn in self._append_retries if txn.txn_partition != txn_partition
            ]
            self._pending_txns = {
                transactional_id: txn
                for transactional_id, txn in self._pending_txns.items()
                if txn.txn_partition != txn_partition
            }

    def maybe_write_txn_completion(self, txn: PendingCompleteTxn) -> None:
        with txn.txn_metadata.lock:
            if txn.txn_metadata.topic_partitions:
                return
        with self._lock:
            if self._pending_txns.get(txn.transactional_id) is not txn:
                return
            del self._pending_txns[txn.transactional_id]
        self._write_txn_completion(txn)

    def _write_txn_completion(self, txn: PendingCompleteTxn) -> None:
        found = self._state_manager.get_transaction_state(txn.transactional_id)
        if (
            not isinstance(found, CoordinatorEpochAndTxnMetadata)
            or found.coordinator_epoch != txn.coordinator_epoch
        ):
            logger.info("The completion of %s is left to another coordinator", txn.transactional_id)
            return

        def on_appended(error: Errors) -> None:
            if error is Errors.NONE or error in NO_LONGER_COORDINATOR:
                return
            logger.info(
                "The completion of %s is written again: %s", txn.transactional_id, error.name
            )
            with self._lock:
                self._append_retries.append(txn)
            self._ensure_retry_scheduled()

        self._state_manager.append_transaction_to_log(
            txn.transactional_id,
            txn.coordinator_epoch,
            txn.new_metadata,
            on_appended,
            retry_on_error=lambda error: error not in NO_LONGER_COORDINATOR,
        )


def _to_request(marker: PendingMarker) -> WriteTxnMarkersRequest.WritableTxnMarker:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(marker.topic_partitions):
        topics.setdefault(topic, []).append(partition)
    return WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.result.value,
        coordinator_epoch=marker.txn.coordinator_epoch,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=partitions)
            for topic, partitions in topics.items()
        ],
    )
