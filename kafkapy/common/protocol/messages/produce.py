"""Produce: append record batches to partitions."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
)


class ProduceRequest(
    Message, api_key=ApiKeys.PRODUCE, versions="0-11", flexible="9+", deprecated="0-6"
):
    """Ports: org.apache.kafka.common.message.ProduceRequestData"""

    class PartitionProduceData(Struct):
        index: int = int32("0+")
        records: memoryview | None = records("0+", nullable="0+")

    class TopicProduceData(Struct):
        name: str = string("0+")
        partition_data: list[ProduceRequest.PartitionProduceData] = array(
            "PartitionProduceData", "0+"
        )

    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = int16("0+")
    timeout_ms: int = int32("0+")
    topic_data: list[TopicProduceData] = array("TopicProduceData", "0+")


class ProduceResponse(Message, api_key=ApiKeys.PRODUCE, versions="0-11", flexible="9+"):
    """Ports: org.apache.kafka.common.message.ProduceResponseData"""

    class BatchIndexAndErrorMessage(Struct):
        batch_index: int = int32("8+")
        batch_index_error_message: str | None = string("8+", nullable="8+", default=None)

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32("10+", default=-1)
        leader_epoch: int = int32("10+", default=-1)

    class PartitionProduceResponse(Struct):
        index: int = int32("0+")
        error_code: int = int16("0+")
        base_offset: int = int64("0+")
        log_append_time_ms: int = int64("2+", default=-1, ignorable=True)
        log_start_offset: int = int64("5+", default=-1, ignorable=True)
        record_errors: list[ProduceResponse.BatchIndexAndErrorMessage] = array(
            "BatchIndexAndErrorMessage", "8+", ignorable=True
        )
        error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
        current_leader: ProduceResponse.LeaderIdAndEpoch = struct("LeaderIdAndEpoch", "10+", tag=0)

    class TopicProduceResponse(Struct):
        name: str = string("0+")
        partition_responses: list[ProduceResponse.PartitionProduceResponse] = array(
            "PartitionProduceResponse", "0+"
        )

    class NodeEndpoint(Struct):
        node_id: int = int32("10+")
        host: str = string("10+")
        port: int = int32("10+")
        rack: str | None = string("10+", nullable="10+", default=None)

    responses: list[TopicProduceResponse] = array("TopicProduceResponse", "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", "10+", tag=0)
