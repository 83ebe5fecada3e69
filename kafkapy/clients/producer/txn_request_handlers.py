"""The requests of a producer's transactions, and what is done with their responses.

One is in flight at a time. A handler that is to be tried again goes back into the manager's queue;
one that cannot go on tells the manager how badly: abortable, or fatal.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.consumer.consumer_errors import CommitFailedError
from kafkapy.clients.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.clients.producer.producer_id_and_epoch import ProducerIdAndEpoch
from kafkapy.clients.producer.transactional_request_result import TransactionalRequestResult
from kafkapy.common.errors import (
    Errors,
    GroupAuthorizationError,
    KafkaError,
    RetriableError,
    TopicAuthorizationError,
)
from kafkapy.common.protocol.coordinator_type import CoordinatorType
from kafkapy.common.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkapy.common.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkapy.common.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkapy.common.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.common.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkapy.common.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node

if TYPE_CHECKING:
    from kafkapy.clients.producer.transaction_manager import TransactionManager

logger = logging.getLogger(__name__)

# The previous transaction's markers are all but written: asking again soon is worth it.
ADD_PARTITIONS_RETRY_BACKOFF_MS = 20
_FIRST_BATCHED_FIND_COORDINATOR = 4
# Later versions are for brokers that verify on behalf of many producers.
_LAST_ADD_PARTITIONS_OF_CLIENTS = 3
_FIRST_TXN_OFFSET_COMMIT_WITH_MEMBER = 3
# Later versions imply the second protocol of transactions, which this client does not speak.
_LAST_TXN_OFFSET_COMMIT = 4
LAST_END_TXN_VERSION = 4

_COORDINATOR_MOVED = (Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE)
_FENCED = (Errors.INVALID_PRODUCER_EPOCH, Errors.PRODUCER_FENCED)
_LOST_PRODUCER = (Errors.UNKNOWN_PRODUCER_ID, Errors.INVALID_PRODUCER_ID_MAPPING)


class TxnPriority(IntEnum):
    """Ports: org.apache.kafka.clients.producer.internals.TransactionManager.Priority"""

    FIND_COORDINATOR = 0
    INIT_PRODUCER_ID = 1
    ADD_PARTITIONS_OR_OFFSETS = 2
    END_TXN = 3
    EPOCH_BUMP = 4


class TxnRequestHandler(ABC):
    """One request. Made under the manager's lock, completed on the sender's thread.

    Ports: org.apache.kafka.clients.producer.internals.TransactionManager.TxnRequestHandler
    """

    coordinator_type: CoordinatorType | None = CoordinatorType.TRANSACTION
    is_end_txn = False

    def __init__(
        self,
        manager: TransactionManager,
        operation: str,
        *,
        priority: TxnPriority,
        result: TransactionalRequestResult | None = None,
    ) -> None:
        self._manager = manager  # constant after construction
        self.priority = priority
        self.result = result or TransactionalRequestResult(operation)
        self.is_retry = False
        self.retry_backoff_ms = manager.retry_backoff_ms

    @abstractmethod
    def request(self) -> VersionedRequest: ...

    @abstractmethod
    def handle_response(self, response: Message) -> None:
        """With the manager's lock held."""

    @property
    def coordinator_key(self) -> str:
        return self._manager.transactional_id or ""

    def on_complete(self, response: ClientResponse) -> None:
        manager = self._manager
        if response.header.correlation_id != manager.in_flight_correlation_id:
            self.fail_fatally(IllegalStateError("More than one transactional request is in flight"))
            return
        manager.set_in_flight_correlation_id(None)
        if response.disconnected:
            logger.debug("%s: disconnected, will retry", type(self).__name__)
            manager.lookup_coordinator_for(self)
            manager.retry(self)
        elif response.version_mismatch is not None:
            self.fail_fatally(response.version_mismatch)
        elif response.message is not None:
            with manager.lock:
                try:
                    self.handle_response(response.message)
                except IllegalStateError as error:
                    # What follows from a wrong state would be wrong too.
                    self.fail_fatally(error)
        else:
            self.fail_fatally(KafkaError("A transactional request ended without a response"))

    def fail_fatally(self, error: KafkaError) -> None:
        self.result.fail(error)
        self._manager.transition_to_fatal_error(error)

    def fail_abortable(self, error: KafkaError) -> None:
        self.result.fail(error)
        self._manager.transition_to_abortable_error(error)

    def fail_abortable_if_possible(self, error: KafkaError) -> None:
        if self._manager.abortable_error_if_possible(error):
            self.fail_abortable(error)
        else:
            self.fail_fatally(error)

    def _retry_with_new_coordinator(self) -> None:
        self._manager.lookup_coordinator_for(self)
        self._manager.retry(self)

    def _handle_common_error(self, error: Errors) -> None:
        """What all requests to the transaction coordinator do with an error."""
        exception = error.exception_class
        if error in _COORDINATOR_MOVED:
            self._retry_with_new_coordinator()
        elif exception is not None and issubclass(exception, RetriableError):
            self._manager.retry(self)
        elif error in _LOST_PRODUCER:
            self.fail_abortable_if_possible(error.exception())
        elif error in _FENCED:
            self.fail_fatally(Errors.PRODUCER_FENCED.exception())
        elif error is Errors.TRANSACTION_ABORTABLE:
            self.fail_abortable(error.exception())
        else:
            self.fail_fatally(error.exception())


class InitProducerIdHandler(TxnRequestHandler):
    """Ports: org.apache.kafka.clients.producer.internals.TransactionManager.InitProducerIdHandler

    A producer without transactions may ask any broker.
    """

    def __init__(
        self,
        manager: TransactionManager,
        *,
        identity: ProducerIdAndEpoch,
        transaction_timeout_ms: int,
        is_epoch_bump: bool,
    ) -> None:
        priority = TxnPriority.EPOCH_BUMP if is_epoch_bump else TxnPriority.INIT_PRODUCER_ID
        super().__init__(manager, "init_transactions", priority=priority)
        self._identity = identity
        self._transaction_timeout_ms = transaction_timeout_ms
        self._is_epoch_bump = is_epoch_bump
        if not manager.is_transactional:
            self.coordinator_type = None

    def request(self) -> VersionedRequest:
        return VersionedRequest(
            InitProducerIdRequest(
                transactional_id=self._manager.transactional_id,
                transaction_timeout_ms=self._transaction_timeout_ms,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.epoch,
            )
        )

    def handle_response(self, response: Message) -> None:
        assert isinstance(response, InitProducerIdResponse)
        error = Errors.for_code(response.error_code)
        if error is Errors.NONE:
            self._manager.initialized(
                ProducerIdAndEpoch(response.producer_id, response.producer_epoch),
                is_epoch_bump=self._is_epoch_bump,
            )
            self.result.done()
        elif error in (
            Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            Errors.CLUSTER_AUTHORIZATION_FAILED,
        ):
            # Not for good: once the right is granted, the user may try again.
            self.fail_abortable(error.exception())
        else:
            self._handle_common_error(error)


class AddPartitionsToTxnHandler(TxnRequestHandler):
    """Brings partitions into the transaction.

    Ports: org.apache.kafka.clients.producer.internals.TransactionManager.AddPartitionsToTxnHandler
    """

    def __init__(
        self,
        manager: TransactionManager,
        identity: ProducerIdAndEpoch,
        partitions: frozenset[TopicPartition],
    ) -> None:
        super().__init__(
            manager, "add_partitions_to_transaction", priority=TxnPriority.ADD_PARTITIONS_OR_OFFSETS
        )
        self._identity = identity
        self._partitions = partitions

    def request(self) -> VersionedRequest:
        by_topic: dict[str, list[int]] = {}
        for partition in sorted(self._partitions):
            by_topic.setdefault(partition.topic, []).append(partition.partition)
        return VersionedRequest(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.coordinator_key,
                v3_and_below_producer_id=self._identity.producer_id,
                v3_and_below_producer_epoch=self._identity.epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
                        name=topic, partitions=partitions
                    )
                    for topic, partitions in by_topic.items()
                ],
            ),
            max_version=_LAST_ADD_PARTITIONS_OF_CLIENTS,
        )

    def handle_response(self, response: Message) -> None:
        assert isinstance(response, AddPartitionsToTxnResponse)
        errors = {
            TopicPartition(topic.name, result.partition_index): Errors.for_code(
                result.partition_error_code
            )
            for topic in response.results_by_topic_v3_and_below
            for result in topic.results_by_partition
        }
        unauthorized: set[str] = set()
        has_partition_errors = False
        for partition, error in errors.items():
            exception = error.exception_class
            if error is Errors.NONE:
                continue
            if error is Errors.CONCURRENT_TRANSACTIONS:
                if not self._manager.has_partitions_in_transaction:
                    self.retry_backoff_ms = min(
                        ADD_PARTITIONS_RETRY_BACKOFF_MS, self._manager.retry_backoff_ms
                    )
                self._manager.retry(self)
                return
            if error is Errors.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.add(partition.topic)
            elif (
                error in _COORDINATOR_MOVED
                or error in _LOST_PRODUCER
                or error in _FENCED
                or error
                in (
                    Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    Errors.INVALID_TXN_STATE,
                    Errors.TRANSACTION_ABORTABLE,
                )
                or (exception is not None and issubclass(exception, RetriableError))
            ):
                self._handle_common_error(error)
                return
            else:
                has_partition_errors = True
        self._manager.partitions_answered(set(errors))
        if unauthorized:
            self.fail_abortable(
                TopicAuthorizationError(f"Not authorized for topics {sorted(unauthorized)}")
            )
        elif has_partition_errors:
            named = {str(partition): error.name for partition, error in errors.items()}
            self.fail_abortable(
                KafkaError(f"Partitions cannot be added to the transaction: {named}")
            )
        else:
            self._manager.partitions_added(set(errors))
            self.result.done()


class FindCoordinatorHandler(TxnRequestHandler):
    """Ports: org.apache.kafka.clients.producer.internals.TransactionManager.FindCoordinatorHandler

    Any broker can be asked.
    """

    coordinator_type = None

    def __init__(self, manager: TransactionManager, kind: CoordinatorType, key: str) -> None:
        super().__init__(manager, "find_coordinator", priority=TxnPriority.FIND_COORDINATOR)
        self._kind = kind
        self._key = key

    def request(self) -> VersionedRequest:
        def build(version: int) -> FindCoordinatorRequest:
            if version >= _FIRST_BATCHED_FIND_COORDINATOR:
                return FindCoordinatorRequest(key_type=self._kind, coordinator_keys=[self._key])
            return FindCoordinatorRequest(key_type=self._kind, key=self._key)

        return VersionedRequest(build, api_key=FindCoordinatorRequest.API_KEY)

    def handle_response(self, response: Message) -> None:
        assert isinstance(response, FindCoordinatorResponse)
        if response.coordinators:
            found = response.coordinators[0]
            node = Node(found.node_id, found.host, found.port)
            error = Errors.for_code(found.error_code)
        else:
            node = Node(response.node_id, response.host, response.port)
            error = Errors.for_code(response.error_code)
        exception = error.exception_class
        if error is Errors.NONE:
            self._manager.set_coordinator(self._kind, node)
            self.result.done()
        elif exception is not None and issubclass(exception, RetriableError):
            self._manager.retry(self)
        elif error is Errors.GROUP_AUTHORIZATION_FAILED:
            self.fail_abortable(GroupAuthorizationError(f"Not authorized for group {self._key}"))
        elif error is Errors.TRANSACTION_ABORTABLE:
            self.fail_abortable(error.exception())
        else:
            self.fail_fatally(error.exception())


class EndTxnHandler(TxnRequestHandler):
    """Ports: org.apache.kafka.clients.producer.internals.TransactionManager.EndTxnHandler"""

    is_end_txn = True

    def __init__(
        self, manager: TransactionManager, identity: ProducerIdAndEpoch, *, is_commit: bool
    ) -> None:
        operation = "commit_transaction" if is_commit else "abort_transaction"
        super().__init__(manager, operation, priority=TxnPriority.END_TXN)
        self._identity = identity
        self._is_commit = is_commit

    def request(self) -> VersionedRequest:
        return VersionedRequest(
            EndTxnRequest(
                transactional_id=self.coordinator_key,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.epoch,
                committed=self._is_commit,
            ),
            max_version=LAST_END_TXN_VERSION,
        )

    def handle_response(self, response: Message) -> None:
        assert isinstance(response, EndTxnResponse)
        error = Errors.for_code(response.error_code)
        if error is Errors.NONE:
            self._manager.complete_transaction()
            self.result.done()
        else:
            self._handle_common_error(error)


class AddOffsetsToTxnHandler(TxnRequestHandler):
    """Ports: org.apache.kafka.clients.producer.internals.TransactionManager.AddOffsetsToTxnHandler

    Its result is that of the commit which follows.
    """

    def __init__(
        self,
        manager: TransactionManager,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_metadata: ConsumerGroupMetadata,
    ) -> None:
        super().__init__(
            manager, "send_offsets_to_transaction", priority=TxnPriority.ADD_PARTITIONS_OR_OFFSETS
        )
        self._identity = manager.producer_id_and_epoch
        self._offsets = offsets
        self._group_metadata = group_metadata

    def request(self) -> VersionedRequest:
        return VersionedRequest(
            AddOffsetsToTxnRequest(
                transactional_id=self.coordinator_key,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.epoch,
                group_id=self._group_metadata.group_id,
            )
        )

    def handle_response(self, response: Message) -> None:
        assert isinstance(response, AddOffsetsToTxnResponse)
        error = Errors.for_code(response.error_code)
        if error is Errors.NONE:
            self._manager.offsets_added()
            self._manager.enqueue(
                TxnOffsetCommitHandler(
                    self._manager, self._identity, self._offsets, self._group_metadata, self.result
                )
            )
        elif error is Errors.GROUP_AUTHORIZATION_FAILED:
            group_id = self._group_metadata.group_id
            self.fail_abortable(GroupAuthorizationError(f"Not authorized for group {group_id}"))
        else:
            self._handle_common_error(error)


class TxnOffsetCommitHandler(TxnRequestHandler):
    """Commits offsets with the transaction, at the group's coordinator.

    Ports: org.apache.kafka.clients.producer.internals.TransactionManager.TxnOffsetCommitHandler
    """

    coordinator_type = CoordinatorType.GROUP

    def __init__(
        self,
        manager: TransactionManager,
        identity: ProducerIdAndEpoch,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group_metadata: ConsumerGroupMetadata,
        result: TransactionalRequestResult,
    ) -> None:
        super().__init__(
            manager,
            "send_offsets_to_transaction",
            priority=TxnPriority.ADD_PARTITIONS_OR_OFFSETS,
            result=result,
        )
        self._identity = identity
        self._pending = dict(offsets)  # not committed yet
        self._group_metadata = group_metadata

    @property
    def coordinator_key(self) -> str:
        return self._group_metadata.group_id

    def request(self) -> VersionedRequest:
        def build(version: int) -> TxnOffsetCommitRequest:
            group = self._group_metadata
            request = TxnOffsetCommitRequest(
                transactional_id=self._manager.transactional_id or "",
                group_id=group.group_id,
                producer_id=self._identity.producer_id,
                producer_epoch=self._identity.epoch,
                topics=self._topics(),
            )
            if version >= _FIRST_TXN_OFFSET_COMMIT_WITH_MEMBER:
                request.generation_id = group.generation_id
                request.member_id = group.member_id
                request.group_instance_id = group.group_instance_id
            return request

        return VersionedRequest(
            build,
            api_key=TxnOffsetCommitRequest.API_KEY,
            max_version=_LAST_TXN_OFFSET_COMMIT,
        )

    def _topics(self) -> list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]:
        topics: dict[str, TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic] = {}
        for partition, offset in self._pending.items():
            topic = topics.setdefault(
                partition.topic,
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=partition.topic),
            )
            topic.partitions.append(
                TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                    partition_index=partition.partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=(
                        -1 if offset.leader_epoch is None else offset.leader_epoch
                    ),
                    committed_metadata=offset.metadata,
                )
            )
        return list(topics.values())

    def handle_response(self, response: Message) -> None:
        assert isinstance(response, TxnOffsetCommitResponse)
        group_id = self._group_metadata.group_id
        is_coordinator_asked_for = False
        for topic in response.topics:
            for result in topic.partitions:
                partition = TopicPartition(topic.name, result.partition_index)
                error = Errors.for_code(result.error_code)
                exception = error.exception_class
                if error is Errors.NONE:
                    self._pending.pop(partition, None)
                elif error in _COORDINATOR_MOVED or error is Errors.REQUEST_TIMED_OUT:
                    if not is_coordinator_asked_for:
                        is_coordinator_asked_for = True
                        self._manager.lookup_coordinator(CoordinatorType.GROUP, group_id)
                elif exception is not None and issubclass(exception, RetriableError):
                    continue  # the topic may be new, or the coordinator still loading
                else:
                    self._fail(error, group_id)
                    return
        if not self._pending:
            self.result.done()
        else:
            self._manager.retry(self)

    def _fail(self, error: Errors, group_id: str) -> None:
        if error is Errors.GROUP_AUTHORIZATION_FAILED:
            self.fail_abortable(GroupAuthorizationError(f"Not authorized for group {group_id}"))
        elif error in (Errors.FENCED_INSTANCE_ID, Errors.TRANSACTION_ABORTABLE):
            self.fail_abortable(error.exception())
        elif error in (Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION):
            self.fail_abortable(
                CommitFailedError(
                    f"The offsets of group {group_id} cannot be committed: the group has gone on"
                    f" without the consumer they are of ({error.message})"
                )
            )
        elif error in _FENCED:
            self.fail_fatally(Errors.PRODUCER_FENCED.exception())
        else:
            self.fail_fatally(error.exception())
