"""Asking coordinators whether partitions are in a transaction."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from kafkapy.clients.inter_broker_send_thread import (
    GenerateRequest,
    InterBrokerSendThread,
    RequestAndCompletionHandler,
)
from kafkapy.common.errors import Errors
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Histogram, Meter
from kafkapy.common.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.metadata.broker import NO_NODE, Node
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

VERIFICATION_TIME_MS = Histogram(
    "kafka.server:type=AddPartitionsToTxnManager,name=VerificationTimeMs",
    "How long it took to verify a transaction with its coordinator, in milliseconds.",
)
VERIFICATION_FAILURES = Meter(
    "kafka.server:type=AddPartitionsToTxnManager,name=VerificationFailureRate",
    "Partitions that were not in the transaction, or could not be verified.",
)

_VERSION = 5

PartitionErrors = Mapping[TopicPartition, Errors]


@dataclass(frozen=True, slots=True)
class _Verification:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    topic_partitions: tuple[TopicPartition, ...]
    supports_abortable_error: bool
    callback: Callable[[PartitionErrors], None]
    start_ms: int


class AddPartitionsToTxnManager:
    """Verifies transactions: directly where this broker coordinates them, else by a request.

    Thread-safe. What waits for one broker goes in one request; a transactional id is in it once.

    Ports: kafka.server.AddPartitionsToTxnManager
    """

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        metadata_cache: MetadataCache,
        *,
        broker_id: int,
        time: Time,
        metrics: MetricsRegistry,
        inter_broker_listener_name: str,
        new_sender: Callable[[Node, GenerateRequest], InterBrokerSendThread],
        try_complete_actions: Callable[[], None],
    ) -> None:
        # constant after construction
        self._coordinator = coordinator
        self._metadata_cache = metadata_cache
        self._broker_id = broker_id
        self._time = time
        self._listener_name = inter_broker_listener_name
        self._new_sender = new_sender
        self._try_complete_actions = try_complete_actions
        self._verification_time_ms = metrics.histogram(VERIFICATION_TIME_MS)
        self._failures = metrics.meter(VERIFICATION_FAILURES)
        self._lock = threading.Lock()
        # guarded by self._lock
        self._waiting: dict[Node, dict[str, _Verification]] = {}
        self._senders: dict[Node, InterBrokerSendThread] = {}
        self._shut_down = False

    def shutdown(self) -> None:
        with self._lock:
            self._shut_down = True
            senders = list(self._senders.values())
        for sender in senders:
            sender.initiate_shutdown()
        for sender in senders:
            sender.await_shutdown()

    def verify_transaction(
        self,
        transactional_id: str,
        *,
        producer_id: int,
        producer_epoch: int,
        topic_partitions: Collection[TopicPartition],
        supports_abortable_error: bool,
        callback: Callable[[PartitionErrors], None],
    ) -> None:
        """Calls back with the partitions that are not in the transaction, on this thread if this
        broker is the coordinator."""
        verification = _Verification(
            transactional_id,
            producer_id,
            producer_epoch,
            tuple(topic_partitions),
            supports_abortable_error,
            callback,
            self._time.hi_res_clock_ms(),
        )
        node = self._metadata_cache.get_partition_leader_endpoint(
            TRANSACTION_STATE_TOPIC,
            self._coordinator.partition_for(transactional_id),
            self._listener_name,
        )
        if node is None or node == NO_NODE:
            self._complete_all(verification, Errors.COORDINATOR_NOT_AVAILABLE)
        elif node.id == self._broker_id:
            self._complete(
                verification,
                self._coordinator.handle_verify_partitions_in_transaction(
                    transactional_id,
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    partitions=topic_partitions,
                ),
            )
        else:
            self._enqueue(node, verification)

    def _enqueue(self, node: Node, verification: _Verification) -> None:
        """Of two that wait under one transactional id, one is told to come again."""
        refused: tuple[_Verification, Errors] | None = None
        with self._lock:
            if self._shut_down:
                return
            sender = self._senders.get(node)
            if sender is None:
                sender = self._new_sender(node, lambda: self._next_request(node))
                self._senders[node] = sender
                sender.start()
            waiting = self._waiting.setdefault(node, {})
            earlier = waiting.get(verification.transactional_id)
            if earlier is not None and earlier.producer_epoch > verification.producer_epoch:
                refused = verification, Errors.INVALID_PRODUCER_EPOCH
            else:
                waiting[verification.transactional_id] = verification
                if earlier is not None:
                    # The same epoch: its client has gone away and sends again.
                    same = earlier.producer_epoch == verification.producer_epoch
                    error = Errors.NETWORK_EXCEPTION if same else Errors.INVALID_PRODUCER_EPOCH
                    refused = earlier, error
        sender.wakeup()
        if refused is not None:
            self._complete_all(*refused)

    def _next_request(self, node: Node) -> RequestAndCompletionHandler | None:
        with self._lock:
            waiting = self._waiting.pop(node, None)
        if not waiting:
            return None
        return RequestAndCompletionHandler(
            AddPartitionsToTxnRequest(transactions=[_to_request(v) for v in waiting.values()]),
            _VERSION,
            lambda response: self._on_response(waiting, response),
        )

    def _on_response(self, waiting: Mapping[str, _Verification], response: Message | None) -> None:
        results: dict[str, dict[TopicPartition, Errors]] = {}
        error = Errors.NETWORK_EXCEPTION
        if isinstance(response, AddPartitionsToTxnResponse):
            error = Errors.for_code(response.error_code)
            if error is Errors.CLUSTER_AUTHORIZATION_FAILED:
                # Between brokers; a client could make nothing of it.
                error = Errors.INVALID_TXN_STATE
            for result in response.results_by_transaction:
                results[result.transactional_id] = {
                    TopicPartition(topic.name, partition.partition_index): Errors.for_code(
                        partition.partition_error_code
                    )
                    for topic in result.topic_results
                    for partition in topic.results_by_partition
                }
        for transactional_id, verification in waiting.items():
            if error is not Errors.NONE:
                self._complete_all(verification, error)
            else:
                self._complete(verification, results.get(transactional_id, {}))
        # The appends that were verified ran on this thread, not on a request handler's.
        self._try_complete_actions()

    def _complete_all(self, verification: _Verification, error: Errors) -> None:
        self._complete(verification, dict.fromkeys(verification.topic_partitions, error))

    def _complete(self, verification: _Verification, results: PartitionErrors) -> None:
        unverified = {
            topic_partition: _produce_error(
                error, supports_abortable_error=verification.supports_abortable_error
            )
            for topic_partition in verification.topic_partitions
            if (error := results.get(topic_partition, Errors.UNKNOWN_SERVER_ERROR))
            is not Errors.NONE
        }
        self._verification_time_ms.update(self._time.hi_res_clock_ms() - verification.start_ms)
        if unverified:
            self._failures.mark(len(unverified))
            logger.info(
                "Partitions are not verified for the transaction of %s: %s",
                verification.transactional_id,
                {str(tp): error.name for tp, error in unverified.items()},
            )
        verification.callback(unverified)


def _produce_error(error: Errors, *, supports_abortable_error: bool) -> Errors:
    """As a producer expects to be told."""
    if error is Errors.PRODUCER_FENCED:
        return Errors.INVALID_PRODUCER_EPOCH
    if error is Errors.TRANSACTION_ABORTABLE and not supports_abortable_error:
        return Errors.INVALID_TXN_STATE
    return error


def _to_request(
    verification: _Verification,
) -> AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction:
    topics: dict[str, list[int]] = {}
    for topic, partition in verification.topic_partitions:
        topics.setdefault(topic, []).append(partition)
    return AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=verification.transactional_id,
        producer_id=verification.producer_id,
        producer_epoch=verification.producer_epoch,
        verify_only=True,
        topics=[
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=partitions)
            for topic, partitions in topics.items()
        ],
    )
