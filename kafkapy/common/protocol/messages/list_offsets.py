"""ListOffsets: find offsets by timestamp, or the ends of a partition."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string


class ListOffsetsRequest(
    Message, api_key=ApiKeys.LIST_OFFSETS, versions="0-10", flexible="6+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.ListOffsetsRequestData"""

    class ListOffsetsPartition(Struct):
        partition_index: int = int32("0+")
        current_leader_epoch: int = int32("4+", default=-1, ignorable=True)
        timestamp: int = int64("0+")
        max_num_offsets: int = int32("0", default=1)

    class ListOffsetsTopic(Struct):
        name: str = string("0+")
        partitions: list[ListOffsetsRequest.ListOffsetsPartition] = array(
            "ListOffsetsPartition", "0+"
        )

    replica_id: int = int32("0+")
    isolation_level: int = int8("2+")
    topics: list[ListOffsetsTopic] = array("ListOffsetsTopic", "0+")
    timeout_ms: int = int32("10+", ignorable=True)


class ListOffsetsResponse(Message, api_key=ApiKeys.LIST_OFFSETS, versions="0-10", flexible="6+"):
    """Ports: org.apache.kafka.common.message.ListOffsetsResponseData"""

    class ListOffsetsPartitionResponse(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")
        old_style_offsets: list[int] = array(int64, "0")
        timestamp: int = int64("1+", default=-1)
        offset: int = int64("1+", default=-1)
        leader_epoch: int = int32("4+", default=-1)

    class ListOffsetsTopicResponse(Struct):
        name: str = string("0+")
        partitions: list[ListOffsetsResponse.ListOffsetsPartitionResponse] = array(
            "ListOffsetsPartitionResponse", "0+"
        )

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = array("ListOffsetsTopicResponse", "0+")
