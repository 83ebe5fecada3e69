"""OffsetDelete: delete offsets of a group."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string


class OffsetDeleteRequest(Message, api_key=ApiKeys.OFFSET_DELETE, versions="0", flexible="none"):
    """Ports: org.apache.kafka.common.message.OffsetDeleteRequestData"""

    class OffsetDeleteRequestPartition(Struct):
        partition_index: int = int32("0+")

    class OffsetDeleteRequestTopic(Struct):
        name: str = string("0+")
        partitions: list[OffsetDeleteRequest.OffsetDeleteRequestPartition] = array(
            "OffsetDeleteRequestPartition", "0+"
        )

    group_id: str = string("0+")
    topics: list[OffsetDeleteRequestTopic] = array("OffsetDeleteRequestTopic", "0+")


class OffsetDeleteResponse(Message, api_key=ApiKeys.OFFSET_DELETE, versions="0", flexible="none"):
    """Ports: org.apache.kafka.common.message.OffsetDeleteResponseData"""

    class OffsetDeleteResponsePartition(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")

    class OffsetDeleteResponseTopic(Struct):
        name: str = string("0+")
        partitions: list[OffsetDeleteResponse.OffsetDeleteResponsePartition] = array(
            "OffsetDeleteResponsePartition", "0+"
        )

    error_code: int = int16("0+")
    throttle_time_ms: int = int32("0+", ignorable=True)
    topics: list[OffsetDeleteResponseTopic] = array("OffsetDeleteResponseTopic", "0+")
