"""The answers to transaction requests that failed as a whole: see error_responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kafkapy.common.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
)
from kafkapy.common.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kafkapy.common.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafkapy.common.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkapy.common.protocol.schema import Message


def _add_partitions_to_txn(body: AddPartitionsToTxnRequest, error: Errors, message: str) -> Message:
    # Versions below 4 have no error code of their own, so their partitions carry it.
    return AddPartitionsToTxnResponse(
        error_code=error.code,
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                        partition_index=partition, partition_error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in body.v3_and_below_topics
        ],
    )


def _txn_offset_commit(body: TxnOffsetCommitRequest, error: Errors, message: str) -> Message:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error.code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _write_txn_markers(body: WriteTxnMarkersRequest, error: Errors, message: str) -> Message:
    return WriteTxnMarkersResponse(
        markers=[
            WriteTxnMarkersResponse.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult(
                                partition_index=partition, error_code=error.code
                            )
                            for partition in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in body.markers
        ]
    )


def _describe_transactions(
    body: DescribeTransactionsRequest, error: Errors, message: str
) -> Message:
    return DescribeTransactionsResponse(
        transaction_states=[
            DescribeTransactionsResponse.TransactionState(
                transactional_id=transactional_id, error_code=error.code
            )
            for transactional_id in body.transactional_ids
        ]
    )


def _describe_producers(body: DescribeProducersRequest, error: Errors, message: str) -> Message:
    return DescribeProducersResponse(
        topics=[
            DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[
                    DescribeProducersResponse.PartitionResponse(
                        partition_index=partition, error_code=error.code, error_message=message
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in body.topics
        ]
    )


TRANSACTION_BUILDERS: dict[ApiKeys, Callable[[Any, Errors, str], Message]] = {
    ApiKeys.ADD_PARTITIONS_TO_TXN: _add_partitions_to_txn,
    ApiKeys.TXN_OFFSET_COMMIT: _txn_offset_commit,
    ApiKeys.WRITE_TXN_MARKERS: _write_txn_markers,
    ApiKeys.DESCRIBE_TRANSACTIONS: _describe_transactions,
    ApiKeys.DESCRIBE_PRODUCERS: _describe_producers,
}
