"""AddPartitionsToTxn: add partitions to transactions, or verify that they belong to them."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int16,
    int32,
    int64,
    string,
)


class AddPartitionsToTxnRequest(
    Message, api_key=ApiKeys.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+"
):
    """Ports: org.apache.kafka.common.message.AddPartitionsToTxnRequestData"""

    class AddPartitionsToTxnTopic(Struct):
        name: str = string("0+")
        partitions: list[int] = array(int32, "0+")

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str = string("4+")
        producer_id: int = int64("4+")
        producer_epoch: int = int16("4+")
        verify_only: bool = bool_("4+")
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = array(
            "AddPartitionsToTxnTopic", "4+"
        )

    transactions: list[AddPartitionsToTxnTransaction] = array("AddPartitionsToTxnTransaction", "4+")
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array("AddPartitionsToTxnTopic", "0-3")


class AddPartitionsToTxnResponse(
    Message, api_key=ApiKeys.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+"
):
    """Ports: org.apache.kafka.common.message.AddPartitionsToTxnResponseData"""

    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: int = int32("0+")
        partition_error_code: int = int16("0+")

    class AddPartitionsToTxnTopicResult(Struct):
        name: str = string("0+")
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = (
            array("AddPartitionsToTxnPartitionResult", "0+")
        )

    class AddPartitionsToTxnResult(Struct):
        transactional_id: str = string("4+")
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = array(
            "AddPartitionsToTxnTopicResult", "4+"
        )

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array("AddPartitionsToTxnResult", "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        "AddPartitionsToTxnTopicResult", "0-3"
    )
