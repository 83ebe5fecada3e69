"""DescribeTopicPartitions: describe partitions page by page."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class DescribeTopicPartitionsRequest(
    Message, api_key=ApiKeys.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.DescribeTopicPartitionsRequestData"""

    class TopicRequest(Struct):
        name: str = string("0+")

    class Cursor(Struct):
        topic_name: str = string("0+")
        partition_index: int = int32("0+")

    topics: list[TopicRequest] = array("TopicRequest", "0+")
    response_partition_limit: int = int32("0+", default=2000)
    cursor: Cursor | None = struct("Cursor", "0+", nullable="0+", default=None)


class DescribeTopicPartitionsResponse(
    Message, api_key=ApiKeys.DESCRIBE_TOPIC_PARTITIONS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.DescribeTopicPartitionsResponseData"""

    class DescribeTopicPartitionsResponsePartition(Struct):
        error_code: int = int16("0+")
        partition_index: int = int32("0+")
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+", default=-1, ignorable=True)
        replica_nodes: list[int] = array(int32, "0+")
        isr_nodes: list[int] = array(int32, "0+")
        eligible_leader_replicas: list[int] | None = array(int32, "0+", nullable="0+", default=None)
        last_known_elr: list[int] | None = array(int32, "0+", nullable="0+", default=None)
        offline_replicas: list[int] = array(int32, "0+", ignorable=True)

    class DescribeTopicPartitionsResponseTopic(Struct):
        error_code: int = int16("0+")
        name: str | None = string("0+", nullable="0+")
        topic_id: UUID = uuid("0+", ignorable=True)
        is_internal: bool = bool_("0+", ignorable=True)
        partitions: list[
            DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
        ] = array("DescribeTopicPartitionsResponsePartition", "0+")
        topic_authorized_operations: int = int32("0+", default=-2147483648)

    class Cursor(Struct):
        topic_name: str = string("0+")
        partition_index: int = int32("0+")

    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(
        "DescribeTopicPartitionsResponseTopic", "0+"
    )
    next_cursor: Cursor | None = struct("Cursor", "0+", nullable="0+", default=None)
