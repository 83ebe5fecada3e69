"""The Produce API: where a record enters the broker."""

from __future__ import annotations

import logging
from typing import Final

from kafkapy.common.errors import (
    CorruptRecordError,
    Errors,
    KafkaError,
    TransactionalIdAuthorizationError,
)
from kafkapy.common.protocol.codec import RecordsData
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.replication.partition_response import PartitionResponse
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.replication.transaction_verification import TransactionVerification
from kafkapy.server.apis.leader_hints import LeaderHints
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.log_validator import validate_produce_records

log = logging.getLogger(__name__)

_NONE: Final = Errors.NONE  # kept at hand: asking an enum for a member is slow
# Only this client may write to internal topics.
ADMIN_CLIENT_ID = "__admin_client"
_FIRST_VERSION_WITH_LEADERS: Final = 10
# TRANSACTION_ABORTABLE (KIP-890)
_FIRST_VERSION_WITH_ABORTABLE_ERROR: Final = 11


class ProduceHandler:
    """Validates what only the request can tell, appends through ReplicaManager, answers.

    Ports: kafka.server.KafkaApis.handleProduceRequest
    """

    def __init__(
        self,
        request_channel: RequestChannel,
        replica_manager: ReplicaManager,
        metadata_cache: MetadataCache,
        transaction_verification: TransactionVerification,
    ) -> None:
        self._transaction_verification = transaction_verification
        self._request_channel = request_channel
        self._replica_manager = replica_manager
        self._metadata_cache = metadata_cache

    def handle(self, request: Request) -> None:
        produce = request.body_as(ProduceRequest)
        version = request.header.api_version
        sent = [
            (TopicPartition(topic.name, data.index), _records(data.records))
            for topic in produce.topic_data
            for data in topic.partition_data
        ]
        if produce.transactional_id is None and _has_transactional_records(sent):
            raise TransactionalIdAuthorizationError("Transactional records need a transactional id")
        refused: dict[TopicPartition, PartitionResponse] = {}
        entries: dict[TopicPartition, MemoryRecords] = {}
        for partition, records in sent:
            if not self._metadata_cache.contains(partition):
                refused[partition] = PartitionResponse(Errors.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            try:
                validate_produce_records(version, records)
                entries[partition] = records
            except KafkaError as e:
                refused[partition] = PartitionResponse(
                    Errors.for_exception(e), error_message=str(e)
                )

        def respond(appended: dict[TopicPartition, PartitionResponse]) -> None:
            self._respond(request, produce, {**refused, **appended} if refused else appended)

        if not entries:
            respond({})
            return
        internal_topics_allowed = request.header.client_id == ADMIN_CLIENT_ID
        if produce.transactional_id is not None and _has_transactional_records(sent):
            self._transaction_verification.handle_produce_append(
                produce.transactional_id,
                timeout_ms=produce.timeout_ms,
                required_acks=produce.acks,
                internal_topics_allowed=internal_topics_allowed,
                entries_per_partition=entries,
                supports_abortable_error=version >= _FIRST_VERSION_WITH_ABORTABLE_ERROR,
                response_callback=respond,
            )
            return
        self._replica_manager.append_records(
            timeout_ms=produce.timeout_ms,
            required_acks=produce.acks,
            internal_topics_allowed=internal_topics_allowed,
            origin=AppendOrigin.CLIENT,
            entries_per_partition=entries,
            response_callback=respond,
        )

    def _respond(
        self,
        request: Request,
        produce: ProduceRequest,
        results: dict[TopicPartition, PartitionResponse],
    ) -> None:
        for partition, result in results.items():
            if result.error is not _NONE:
                log.debug(
                    "Produce from %s (client %s) to %s failed: %s %s",
                    request.context.connection_id,
                    request.header.client_id,
                    partition,
                    result.error.name,
                    result.error_message or "",
                )
        if produce.acks == 0:
            # Nobody waits for an answer: a closed connection is the only way to tell of an error.
            if any(result.error is not _NONE for result in results.values()):
                self._request_channel.close_connection(request)
            else:
                self._request_channel.send_no_op_response(request)
            return
        response = ProduceResponse(responses=self._by_topic(results))
        if request.header.api_version >= _FIRST_VERSION_WITH_LEADERS:
            self._add_leaders(request, response)
        self._request_channel.send_response(request, response)

    @staticmethod
    def _by_topic(
        results: dict[TopicPartition, PartitionResponse],
    ) -> list[ProduceResponse.TopicProduceResponse]:
        topics: dict[str, ProduceResponse.TopicProduceResponse] = {}
        for (topic, index), result in results.items():
            answer = topics.get(topic)
            if answer is None:
                answer = topics[topic] = ProduceResponse.TopicProduceResponse(
                    name=topic, partition_responses=[]
                )
            partition = ProduceResponse.PartitionProduceResponse(
                index=index,
                error_code=result.error.code,
                base_offset=result.base_offset,
                log_append_time_ms=result.log_append_time_ms,
                log_start_offset=result.log_start_offset,
            )
            if result.error is not _NONE:
                partition.record_errors = _record_errors(result)
                partition.error_message = result.error_message
            answer.partition_responses.append(partition)
        return list(topics.values())

    def _add_leaders(self, request: Request, response: ProduceResponse) -> None:
        hints = LeaderHints(self._metadata_cache, request.context.listener_name)
        for topic in response.responses:
            for answer in topic.partition_responses:
                if answer.error_code != Errors.NOT_LEADER_OR_FOLLOWER.code:
                    continue
                leader = hints.leader_of(TopicPartition(topic.name, answer.index))
                if leader is not None:
                    answer.current_leader = ProduceResponse.LeaderIdAndEpoch(
                        leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
                    )
        hints.add_nodes_to(response)


def _records(data: RecordsData | None) -> MemoryRecords:
    assert data is None or isinstance(data, memoryview)  # as it was decoded
    return MemoryRecords(data) if data is not None else MemoryRecords.EMPTY


def _record_errors(
    result: PartitionResponse,
) -> list[ProduceResponse.BatchIndexAndErrorMessage]:
    return [
        ProduceResponse.BatchIndexAndErrorMessage(
            batch_index=record.batch_index, batch_index_error_message=record.message
        )
        for record in result.record_errors
    ]


def _has_transactional_records(sent: list[tuple[TopicPartition, MemoryRecords]]) -> bool:
    """Whether the first batch of any partition is transactional; no partition may have more."""
    for _, records in sent:
        try:
            batches = records.batches()
        except CorruptRecordError:
            continue  # that partition alone is refused
        if batches and batches[0].is_transactional:
            return True
    return False
