"""Transactions: showing them, and ending those whose producers do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from kafkapy.clients.admin.admin_api_handler import AdminApiHandler, ApiResult
from kafkapy.clients.admin.coordinator_strategy import CoordinatorStrategy, CoordinatorType
from kafkapy.clients.admin.lookup_strategy import NodeStrategy, at_broker
from kafkapy.clients.admin.partition_leader_strategy import PartitionLeaderStrategy
from kafkapy.clients.admin.transaction_description import (
    AbortTransactionSpec,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.producer.prepared_transaction import PreparedTransaction
from kafkapy.clients.producer.txn_request_handlers import LAST_END_TXN_VERSION
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from kafkapy.common.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafkapy.common.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkapy.common.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkapy.common.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafkapy.common.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition, partitions_by_topic
from kafkapy.metadata.broker import Node

V = TypeVar("V")
R = TypeVar("R", bound=Message)

_FIRST_LIST_BY_DURATION = 1
_ANY_DURATION = -1
_ABORT = False


class TransactionCoordinatorHandler(AdminApiHandler[str, V, R]):
    """A call about transactional ids, which goes to their coordinators."""

    retriable = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS})
    unmapping = frozenset({Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR})

    def __init__(self, *, is_batched: bool = True) -> None:
        super().__init__(CoordinatorStrategy(CoordinatorType.TRANSACTION), is_batched=is_batched)


class DescribeTransactionsHandler(
    TransactionCoordinatorHandler[TransactionDescription, DescribeTransactionsResponse]
):
    """Ports: org.apache.kafka.clients.admin.internals.DescribeTransactionsHandler"""

    call_name = "describe_transactions"

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(DescribeTransactionsRequest(transactional_ids=list(keys)))

    def handle_response(
        self, keys: Sequence[str], response: DescribeTransactionsResponse, node: Node
    ) -> ApiResult[str, TransactionDescription]:
        result = self.new_result()
        for state in response.transaction_states:
            started_ms = state.transaction_start_time_ms
            description = TransactionDescription(
                node.id,
                TransactionState(state.transaction_state),
                state.producer_id,
                state.producer_epoch,
                state.transaction_timeout_ms,
                started_ms if started_ms >= 0 else None,
                frozenset(
                    TopicPartition(topic.topic, partition)
                    for topic in state.topics
                    for partition in topic.partitions
                ),
            )
            result.file(state.transactional_id, state.error_code, description)
        return result


class FenceProducersHandler(
    TransactionCoordinatorHandler[ProducerIdAndEpoch, InitProducerIdResponse]
):
    """Takes a new epoch of each transactional id, so that its present producer is refused.

    Ports: org.apache.kafka.clients.admin.internals.FenceProducersHandler
    """

    call_name = "fence_producers"
    retriable = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.CONCURRENT_TRANSACTIONS})

    def __init__(self) -> None:
        super().__init__(is_batched=False)

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            InitProducerIdRequest(transactional_id=keys[0], transaction_timeout_ms=timeout_ms)
        )

    def handle_response(
        self, keys: Sequence[str], response: InitProducerIdResponse, node: Node
    ) -> ApiResult[str, ProducerIdAndEpoch]:
        result = self.new_result()
        fenced = ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        result.file(keys[0], response.error_code, fenced)
        return result


class EndTransactionsHandler(TransactionCoordinatorHandler[None, EndTxnResponse]):
    """Ends transactions in the place of the producers that have prepared them.

    Ending one again in the same way does nothing, so a request whose answer is lost is repeated.
    """

    call_name = "end_transactions"
    retriable = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.CONCURRENT_TRANSACTIONS})

    def __init__(self, transactions: Mapping[str, PreparedTransaction], *, is_commit: bool) -> None:
        super().__init__(is_batched=False)
        self._transactions = transactions
        self._is_commit = is_commit

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        transaction = self._transactions[keys[0]]
        return VersionedRequest(
            EndTxnRequest(
                transactional_id=transaction.transactional_id,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.epoch,
                committed=self._is_commit,
            ),
            max_version=LAST_END_TXN_VERSION,
        )

    def handle_response(
        self, keys: Sequence[str], response: EndTxnResponse, node: Node
    ) -> ApiResult[str, None]:
        result = self.new_result()
        result.file(keys[0], response.error_code, None)
        return result


class ListTransactionsHandler(
    AdminApiHandler[int, tuple[TransactionListing, ...], ListTransactionsResponse]
):
    """Keyed by broker: each knows the transactions that it coordinates.

    Ports: org.apache.kafka.clients.admin.internals.ListTransactionsHandler
    """

    call_name = "list_transactions"
    retriable = frozenset({Errors.COORDINATOR_LOAD_IN_PROGRESS})

    def __init__(
        self,
        *,
        states: Iterable[TransactionState],
        producer_ids: Iterable[int],
        min_duration_ms: int | None,
    ) -> None:
        super().__init__(at_broker(lambda broker_id: broker_id), is_batched=False)
        self._states = [state.value for state in states]
        self._producer_ids = list(producer_ids)
        self._min_duration_ms = min_duration_ms

    def build_request(self, keys: Sequence[int], timeout_ms: int) -> VersionedRequest:
        duration_ms, min_version = self._min_duration_ms, None
        if duration_ms is None:
            duration_ms = _ANY_DURATION
        else:
            min_version = _FIRST_LIST_BY_DURATION
        return VersionedRequest(
            ListTransactionsRequest(
                state_filters=self._states,
                producer_id_filters=self._producer_ids,
                duration_filter=duration_ms,
            ),
            min_version=min_version,
        )

    def handle_response(
        self, keys: Sequence[int], response: ListTransactionsResponse, node: Node
    ) -> ApiResult[int, tuple[TransactionListing, ...]]:
        result = self.new_result()
        listings = tuple(
            TransactionListing(
                listed.transactional_id,
                listed.producer_id,
                TransactionState(listed.transaction_state),
                keys[0],
            )
            for listed in response.transaction_states
        )
        result.file(keys[0], response.error_code, listings)
        return result


class DescribeProducersHandler(
    AdminApiHandler[TopicPartition, tuple[ProducerState, ...], DescribeProducersResponse]
):
    """By the leader of each partition, or by the one broker that is asked for.

    Ports: org.apache.kafka.clients.admin.internals.DescribeProducersHandler
    """

    call_name = "describe_producers"
    retriable = frozenset({Errors.UNKNOWN_TOPIC_OR_PARTITION})

    def __init__(self, broker_id: int | None) -> None:
        strategy: NodeStrategy[TopicPartition]
        if broker_id is None:
            strategy = PartitionLeaderStrategy()
            self.unmapping = frozenset({Errors.NOT_LEADER_OR_FOLLOWER})
        else:
            strategy = at_broker(lambda key: broker_id)
        super().__init__(strategy)

    def build_request(self, keys: Sequence[TopicPartition], timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(
            DescribeProducersRequest(
                topics=[
                    DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=partitions)
                    for topic, partitions in partitions_by_topic(keys).items()
                ]
            )
        )

    def handle_response(
        self, keys: Sequence[TopicPartition], response: DescribeProducersResponse, node: Node
    ) -> ApiResult[TopicPartition, tuple[ProducerState, ...]]:
        result = self.new_result()
        for topic in response.topics:
            for partition in topic.partitions:
                result.file(
                    TopicPartition(topic.name, partition.partition_index),
                    partition.error_code,
                    tuple(_producer(state) for state in partition.active_producers),
                    partition.error_message,
                )
        return result


class AbortTransactionHandler(AdminApiHandler[TopicPartition, None, WriteTxnMarkersResponse]):
    """Writes the marker that the coordinator would write.

    Ports: org.apache.kafka.clients.admin.internals.AbortTransactionHandler
    """

    call_name = "abort_transaction"
    unmapping = frozenset(
        {
            Errors.NOT_LEADER_OR_FOLLOWER,
            Errors.REPLICA_NOT_AVAILABLE,
            Errors.BROKER_NOT_AVAILABLE,
            Errors.UNKNOWN_TOPIC_OR_PARTITION,
        }
    )

    def __init__(self, spec: AbortTransactionSpec) -> None:
        super().__init__(PartitionLeaderStrategy())
        self._spec = spec

    def build_request(self, keys: Sequence[TopicPartition], timeout_ms: int) -> VersionedRequest:
        topic, partition = self._spec.topic_partition
        return VersionedRequest(
            WriteTxnMarkersRequest(
                markers=[
                    WriteTxnMarkersRequest.WritableTxnMarker(
                        producer_id=self._spec.producer_id,
                        producer_epoch=self._spec.producer_epoch,
                        transaction_result=_ABORT,
                        topics=[
                            WriteTxnMarkersRequest.WritableTxnMarkerTopic(
                                name=topic, partition_indexes=[partition]
                            )
                        ],
                        coordinator_epoch=max(0, self._spec.coordinator_epoch),
                    )
                ]
            )
        )

    def handle_response(
        self, keys: Sequence[TopicPartition], response: WriteTxnMarkersResponse, node: Node
    ) -> ApiResult[TopicPartition, None]:
        result = self.new_result()
        for marker in response.markers:
            for topic in marker.topics:
                for partition in topic.partitions:
                    key = TopicPartition(topic.name, partition.partition_index)
                    result.file(key, partition.error_code, None)
        return result


def _producer(state: DescribeProducersResponse.ProducerState) -> ProducerState:
    epoch, start = state.coordinator_epoch, state.current_txn_start_offset
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        epoch if epoch >= 0 else None,
        start if start >= 0 else None,
    )
