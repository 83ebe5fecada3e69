"""What producers ask of the transaction coordinator."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from kafkapy.common.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkapy.common.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkapy.common.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafkapy.common.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafkapy.common.record.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, INTERNAL_TOPICS, TopicPartition
from kafkapy.coordinator.group.group_coordinator import GroupCoordinator
from kafkapy.coordinator.group.offset_and_metadata import NO_METADATA, OffsetAndMetadata
from kafkapy.coordinator.transaction.transaction_coordinator import (
    InitProducerIdResult,
    ProducerIdAndEpoch,
    TransactionCoordinator,
)
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.server.apis.by_topic import by_topic
from kafkapy.utils.time import Time

# The versions from which clients know PRODUCER_FENCED; before, INVALID_PRODUCER_EPOCH says it.
_INIT_PRODUCER_ID_WITH_FENCED = 4
_ADD_PARTITIONS_WITH_FENCED = 2
_ADD_OFFSETS_WITH_FENCED = 2
_END_TXN_WITH_FENCED = 2
_ADD_PARTITIONS_WITH_SEVERAL_TRANSACTIONS = 4
_OFFSET_COMMIT_WITH_LOAD_IN_PROGRESS = 2
_OFFSET_COMMIT_WITH_ABORTABLE = 4
_NO_EPOCH = -1

_AddResult = Callable[[str, Mapping[TopicPartition, Errors]], None]


class TransactionsHandler:
    """Ports: kafka.server.KafkaApis.handleAddPartitionsToTxnRequest"""

    def __init__(
        self,
        request_channel: RequestChannel,
        coordinator: TransactionCoordinator,
        group_coordinator: GroupCoordinator,
        metadata_cache: MetadataCache,
        *,
        time: Time,
    ) -> None:
        self._request_channel = request_channel
        self._coordinator = coordinator
        self._group_coordinator = group_coordinator
        self._metadata_cache = metadata_cache
        self._time = time

    def handle_init_producer_id(self, request: Request) -> None:
        body = request.body_as(InitProducerIdRequest)
        has_id = body.producer_id != NO_PRODUCER_ID
        has_epoch = body.producer_epoch != NO_PRODUCER_EPOCH

        def respond(result: InitProducerIdResult) -> None:
            self._request_channel.send_response(
                request,
                InitProducerIdResponse(
                    error_code=_known(result.error, request, _INIT_PRODUCER_ID_WITH_FENCED).code,
                    producer_id=result.producer_id,
                    producer_epoch=result.producer_epoch,
                ),
            )

        if has_id != has_epoch:
            respond(InitProducerIdResult(error=Errors.INVALID_REQUEST))
            return
        self._coordinator.handle_init_producer_id(
            body.transactional_id,
            body.transaction_timeout_ms,
            ProducerIdAndEpoch(body.producer_id, body.producer_epoch) if has_id else None,
            respond,
        )

    # --- AddPartitionsToTxn

    def handle_add_partitions_to_txn(self, request: Request) -> None:
        body = request.body_as(AddPartitionsToTxnRequest)
        version = request.header.api_version
        if version < _ADD_PARTITIONS_WITH_SEVERAL_TRANSACTIONS:
            transactions = [
                AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                    transactional_id=body.v3_and_below_transactional_id,
                    producer_id=body.v3_and_below_producer_id,
                    producer_epoch=body.v3_and_below_producer_epoch,
                    topics=body.v3_and_below_topics,
                )
            ]
        else:
            transactions = body.transactions
        results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnResult] = []
        lock = threading.Lock()

        def respond() -> None:
            response = (
                AddPartitionsToTxnResponse(results_by_transaction=results)
                if version >= _ADD_PARTITIONS_WITH_SEVERAL_TRANSACTIONS
                else AddPartitionsToTxnResponse(
                    results_by_topic_v3_and_below=results[0].topic_results
                )
            )
            self._request_channel.send_response(request, response)

        def add_result(transactional_id: str, errors: Mapping[TopicPartition, Errors]) -> None:
            """The answer goes out with the last transaction's result."""
            known = {
                partition: _known(error, request, _ADD_PARTITIONS_WITH_FENCED)
                for partition, error in errors.items()
            }
            with lock:
                results.append(_transaction_result(transactional_id, known))
                complete = len(results) == len(transactions)
            if complete:
                respond()

        if not transactions:
            respond()
        for transaction in transactions:
            self._add_or_verify(
                transaction,
                add_result,
                # Later versions are for brokers.
                is_from_client=version < _ADD_PARTITIONS_WITH_SEVERAL_TRANSACTIONS,
            )

    def _add_or_verify(
        self,
        transaction: AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction,
        add_result: _AddResult,
        *,
        is_from_client: bool,
    ) -> None:
        transactional_id = transaction.transactional_id
        partitions = {
            TopicPartition(topic.name, partition)
            for topic in transaction.topics
            for partition in topic.partitions
        }
        refused = {
            partition: error
            for partition in partitions
            if (error := self._refusal(partition, is_from_client=is_from_client)) is not None
        }
        if refused:
            # All of them or none.
            add_result(
                transactional_id,
                {**dict.fromkeys(partitions, Errors.OPERATION_NOT_ATTEMPTED), **refused},
            )
        elif transaction.verify_only:
            add_result(
                transactional_id,
                self._coordinator.handle_verify_partitions_in_transaction(
                    transactional_id,
                    producer_id=transaction.producer_id,
                    producer_epoch=transaction.producer_epoch,
                    partitions=partitions,
                ),
            )
        else:
            self._coordinator.handle_add_partitions_to_transaction(
                transactional_id,
                producer_id=transaction.producer_id,
                producer_epoch=transaction.producer_epoch,
                partitions=partitions,
                callback=lambda error: add_result(
                    transactional_id, dict.fromkeys(partitions, error)
                ),
            )

    def _refusal(self, partition: TopicPartition, *, is_from_client: bool) -> Errors | None:
        if is_from_client and partition.topic in INTERNAL_TOPICS:
            # Offsets have a request of their own; no marker belongs into __transaction_state.
            return Errors.TOPIC_AUTHORIZATION_FAILED
        if not self._metadata_cache.contains(partition):
            return Errors.UNKNOWN_TOPIC_OR_PARTITION
        return None

    # --- offsets

    def handle_add_offsets_to_txn(self, request: Request) -> None:
        """The group's partition of __consumer_offsets becomes part of the transaction."""
        body = request.body_as(AddOffsetsToTxnRequest)

        def respond(error: Errors) -> None:
            self._request_channel.send_response(
                request,
                AddOffsetsToTxnResponse(
                    error_code=_known(error, request, _ADD_OFFSETS_WITH_FENCED).code
                ),
            )

        self._coordinator.handle_add_partitions_to_transaction(
            body.transactional_id,
            producer_id=body.producer_id,
            producer_epoch=body.producer_epoch,
            partitions=[self._offsets_partition(body.group_id)],
            callback=respond,
        )

    def handle_txn_offset_commit(self, request: Request) -> None:
        body = request.body_as(TxnOffsetCommitRequest)
        now_ms = self._time.milliseconds()
        offsets = {
            partition: OffsetAndMetadata(
                wanted.committed_offset,
                None
                if wanted.committed_leader_epoch == _NO_EPOCH
                else wanted.committed_leader_epoch,
                wanted.committed_metadata or NO_METADATA,
                now_ms,
            )
            for topic in body.topics
            for wanted in topic.partitions
            if self._metadata_cache.contains(
                partition := TopicPartition(topic.name, wanted.partition_index)
            )
        }

        def respond(errors: Mapping[TopicPartition, Errors]) -> None:
            self._request_channel.send_response(
                request, _offset_commit_response(body, errors, request.header.api_version)
            )

        if not offsets:
            respond({})
            return
        self._group_coordinator.handle_txn_commit_offsets(
            body.group_id,
            transactional_id=body.transactional_id,
            producer_id=body.producer_id,
            producer_epoch=body.producer_epoch,
            member_id=body.member_id,
            group_instance_id=body.group_instance_id,
            generation_id=body.generation_id,
            offsets=offsets,
            supports_abortable_error=request.header.api_version >= _OFFSET_COMMIT_WITH_ABORTABLE,
            callback=respond,
        )

    def _offsets_partition(self, group_id: str) -> TopicPartition:
        return TopicPartition(
            CONSUMER_OFFSETS_TOPIC, self._group_coordinator.partition_for(group_id)
        )

    # --- EndTxn

    def handle_end_txn(self, request: Request) -> None:
        body = request.body_as(EndTxnRequest)

        def respond(error: Errors) -> None:
            self._request_channel.send_response(
                request,
                EndTxnResponse(error_code=_known(error, request, _END_TXN_WITH_FENCED).code),
            )

        self._coordinator.handle_end_transaction(
            body.transactional_id,
            producer_id=body.producer_id,
            producer_epoch=body.producer_epoch,
            result=TransactionResult(body.committed),
            callback=respond,
        )


def _known(error: Errors, request: Request, first_version_with_fenced: int) -> Errors:
    if error is Errors.PRODUCER_FENCED and request.header.api_version < first_version_with_fenced:
        return Errors.INVALID_PRODUCER_EPOCH
    return error


def _transaction_result(
    transactional_id: str, errors: Mapping[TopicPartition, Errors]
) -> AddPartitionsToTxnResponse.AddPartitionsToTxnResult:
    return AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
        transactional_id=transactional_id,
        topic_results=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                name=topic,
                results_by_partition=[
                    AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                        partition_index=partition,
                        partition_error_code=error.code,
                    )
                    for partition, error in partitions.items()
                ],
            )
            for topic, partitions in by_topic(errors).items()
        ],
    )


def _offset_commit_response(
    body: TxnOffsetCommitRequest, errors: Mapping[TopicPartition, Errors], version: int
) -> TxnOffsetCommitResponse:
    def code(partition: TopicPartition) -> int:
        error = errors.get(partition, Errors.UNKNOWN_TOPIC_OR_PARTITION)
        if (
            error is Errors.COORDINATOR_LOAD_IN_PROGRESS
            and version < _OFFSET_COMMIT_WITH_LOAD_IN_PROGRESS
        ):
            # A client that old would give up.
            error = Errors.COORDINATOR_NOT_AVAILABLE
        return error.code

    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=wanted.partition_index,
                        error_code=code(TopicPartition(topic.name, wanted.partition_index)),
                    )
                    for wanted in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )
