"""ListPartitionReassignments: list the moves of partitions under way."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string


class ListPartitionReassignmentsRequest(
    Message, api_key=ApiKeys.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ListPartitionReassignmentsRequestData"""

    class ListPartitionReassignmentsTopics(Struct):
        name: str = string("0+")
        partition_indexes: list[int] = array(int32, "0+")

    timeout_ms: int = int32("0+", default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(
        "ListPartitionReassignmentsTopics", "0+", nullable="0+", default=None
    )


class ListPartitionReassignmentsResponse(
    Message, api_key=ApiKeys.LIST_PARTITION_REASSIGNMENTS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ListPartitionReassignmentsResponseData"""

    class OngoingPartitionReassignment(Struct):
        partition_index: int = int32("0+")
        replicas: list[int] = array(int32, "0+")
        adding_replicas: list[int] = array(int32, "0+")
        removing_replicas: list[int] = array(int32, "0+")

    class OngoingTopicReassignment(Struct):
        name: str = string("0+")
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = array(
            "OngoingPartitionReassignment", "0+"
        )

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    topics: list[OngoingTopicReassignment] = array("OngoingTopicReassignment", "0+")
