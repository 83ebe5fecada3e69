"""AlterPartitionReassignments: start or cancel moves of partitions to other brokers."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string


class AlterPartitionReassignmentsRequest(
    Message, api_key=ApiKeys.ALTER_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AlterPartitionReassignmentsRequestData"""

    class ReassignablePartition(Struct):
        partition_index: int = int32("0+")
        replicas: list[int] | None = array(int32, "0+", nullable="0+", default=None)

    class ReassignableTopic(Struct):
        name: str = string("0+")
        partitions: list[AlterPartitionReassignmentsRequest.ReassignablePartition] = array(
            "ReassignablePartition", "0+"
        )

    timeout_ms: int = int32("0+", default=60000)
    topics: list[ReassignableTopic] = array("ReassignableTopic", "0+")


class AlterPartitionReassignmentsResponse(
    Message, api_key=ApiKeys.ALTER_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AlterPartitionReassignmentsResponseData"""

    class ReassignablePartitionResponse(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")

    class ReassignableTopicResponse(Struct):
        name: str = string("0+")
        partitions: list[AlterPartitionReassignmentsResponse.ReassignablePartitionResponse] = array(
            "ReassignablePartitionResponse", "0+"
        )

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    responses: list[ReassignableTopicResponse] = array("ReassignableTopicResponse", "0+")
