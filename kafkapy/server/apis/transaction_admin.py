"""What administrators want to know about transactions."""

from __future__ import annotations

from kafkapy.common.errors import ApiError, Errors, InvalidTopicError
from kafkapy.common.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from kafkapy.common.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafkapy.common.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafkapy.common.topic import validate_topic_name
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.server.apis.by_topic import by_topic

_NO_TRANSACTION = -1


class TransactionAdminHandler:
    """Ports: kafka.server.KafkaApis.handleDescribeTransactionsRequest"""

    def __init__(
        self,
        request_channel: RequestChannel,
        coordinator: TransactionCoordinator,
        replica_manager: ReplicaManager,
    ) -> None:
        self._request_channel = request_channel
        self._coordinator = coordinator
        self._replica_manager = replica_manager

    def handle_describe_producers(self, request: Request) -> None:
        body = request.body_as(DescribeProducersRequest)
        self._request_channel.send_response(
            request,
            DescribeProducersResponse(
                topics=[
                    DescribeProducersResponse.TopicResponse(
                        name=topic.name,
                        partitions=[
                            self._active_producers(TopicPartition(topic.name, index))
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in body.topics
                ]
            ),
        )

    def _active_producers(
        self, topic_partition: TopicPartition
    ) -> DescribeProducersResponse.PartitionResponse:
        response = DescribeProducersResponse.PartitionResponse(
            partition_index=topic_partition.partition
        )
        try:
            validate_topic_name(topic_partition.topic)
            partition = self._replica_manager.get_partition_or_raise(topic_partition)
        except ApiError as e:
            response.error_code = Errors.for_exception(e).code
            # Of a name that cannot be, clients are told what is wrong with it.
            response.error_message = str(e) if isinstance(e, InvalidTopicError) else None
            return response
        log = partition.log
        if log is None:
            response.error_code = Errors.NOT_LEADER_OR_FOLLOWER.code
            return response
        response.active_producers = [
            DescribeProducersResponse.ProducerState(
                producer_id=entry.producer_id,
                producer_epoch=entry.producer_epoch,
                last_sequence=entry.last_seq,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=_NO_TRANSACTION
                if entry.current_txn_first_offset is None
                else entry.current_txn_first_offset,
            )
            for entry in log.active_producers()
        ]
        return response

    def handle_describe_transactions(self, request: Request) -> None:
        body = request.body_as(DescribeTransactionsRequest)
        self._request_channel.send_response(
            request,
            DescribeTransactionsResponse(
                transaction_states=[self._describe(name) for name in body.transactional_ids]
            ),
        )

    def _describe(self, transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
        found = self._coordinator.handle_describe_transactions(transactional_id)
        if found.error is not Errors.NONE:
            return DescribeTransactionsResponse.TransactionState(
                error_code=found.error.code, transactional_id=transactional_id
            )
        return DescribeTransactionsResponse.TransactionState(
            transactional_id=transactional_id,
            transaction_state=found.state.label,
            transaction_timeout_ms=found.timeout_ms,
            transaction_start_time_ms=found.start_timestamp,
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            topics=[
                DescribeTransactionsResponse.TopicData(topic=topic, partitions=list(partitions))
                for topic, partitions in by_topic(dict.fromkeys(found.topic_partitions)).items()
            ],
        )

    def handle_list_transactions(self, request: Request) -> None:
        body = request.body_as(ListTransactionsRequest)
        listing = self._coordinator.handle_list_transactions(
            producer_ids=set(body.producer_id_filters),
            state_names=set(body.state_filters),
            min_duration_ms=body.duration_filter,
        )
        self._request_channel.send_response(
            request,
            ListTransactionsResponse(
                error_code=listing.error.code,
                unknown_state_filters=list(listing.unknown_states),
                transaction_states=[
                    ListTransactionsResponse.TransactionState(
                        transactional_id=transactional_id,
                        producer_id=producer_id,
                        transaction_state=state.label,
                    )
                    for transactional_id, producer_id, state in listing.transactions
                ],
            ),
        )
