"""OffsetFetch: read the offsets that consumer groups have stored."""

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


class OffsetFetchRequest(
    Message, api_key=ApiKeys.OFFSET_FETCH, versions="0-9", flexible="6+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.OffsetFetchRequestData"""

    class OffsetFetchRequestTopic(Struct):
        name: str = string("0-7")
        partition_indexes: list[int] = array(int32, "0-7")

    class OffsetFetchRequestTopics(Struct):
        name: str = string("8+")
        partition_indexes: list[int] = array(int32, "8+")

    class OffsetFetchRequestGroup(Struct):
        group_id: str = string("8+")
        member_id: str | None = string("9+", nullable="9+", default=None, ignorable=True)
        member_epoch: int = int32("9+", default=-1, ignorable=True)
        topics: list[OffsetFetchRequest.OffsetFetchRequestTopics] | None = array(
            "OffsetFetchRequestTopics", "8+", nullable="8+"
        )

    group_id: str = string("0-7")
    topics: list[OffsetFetchRequestTopic] | None = array(
        "OffsetFetchRequestTopic", "0-7", nullable="2-7"
    )
    groups: list[OffsetFetchRequestGroup] = array("OffsetFetchRequestGroup", "8+")
    require_stable: bool = bool_("7+")


class OffsetFetchResponse(Message, api_key=ApiKeys.OFFSET_FETCH, versions="0-9", flexible="6+"):
    """Ports: org.apache.kafka.common.message.OffsetFetchResponseData"""

    class OffsetFetchResponsePartition(Struct):
        partition_index: int = int32("0-7")
        committed_offset: int = int64("0-7")
        committed_leader_epoch: int = int32("5-7", default=-1, ignorable=True)
        metadata: str | None = string("0-7", nullable="0-7")
        error_code: int = int16("0-7")

    class OffsetFetchResponseTopic(Struct):
        name: str = string("0-7")
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartition] = array(
            "OffsetFetchResponsePartition", "0-7"
        )

    class OffsetFetchResponsePartitions(Struct):
        partition_index: int = int32("8+")
        committed_offset: int = int64("8+")
        committed_leader_epoch: int = int32("8+", default=-1, ignorable=True)
        metadata: str | None = string("8+", nullable="8+")
        error_code: int = int16("8+")

    class OffsetFetchResponseTopics(Struct):
        name: str = string("8+")
        partitions: list[OffsetFetchResponse.OffsetFetchResponsePartitions] = array(
            "OffsetFetchResponsePartitions", "8+"
        )

    class OffsetFetchResponseGroup(Struct):
        group_id: str = string("8+")
        topics: list[OffsetFetchResponse.OffsetFetchResponseTopics] = array(
            "OffsetFetchResponseTopics", "8+"
        )
        error_code: int = int16("8+")

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = array("OffsetFetchResponseTopic", "0-7")
    error_code: int = int16("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = array("OffsetFetchResponseGroup", "8+")
