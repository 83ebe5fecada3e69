"""OffsetCommit: store the offsets that a consumer group has reached."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, int64, string


class OffsetCommitRequest(
    Message, api_key=ApiKeys.OFFSET_COMMIT, versions="0-9", flexible="8+", deprecated="0-1"
):
    """Ports: org.apache.kafka.common.message.OffsetCommitRequestData"""

    class OffsetCommitRequestPartition(Struct):
        partition_index: int = int32("0+")
        committed_offset: int = int64("0+")
        committed_leader_epoch: int = int32("6+", default=-1, ignorable=True)
        commit_timestamp: int = int64("1", default=-1)
        committed_metadata: str | None = string("0+", nullable="0+")

    class OffsetCommitRequestTopic(Struct):
        name: str = string("0+")
        partitions: list[OffsetCommitRequest.OffsetCommitRequestPartition] = array(
            "OffsetCommitRequestPartition", "0+"
        )

    group_id: str = string("0+")
    generation_id_or_member_epoch: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("1+", ignorable=True)
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = array("OffsetCommitRequestTopic", "0+")


class OffsetCommitResponse(Message, api_key=ApiKeys.OFFSET_COMMIT, versions="0-9", flexible="8+"):
    """Ports: org.apache.kafka.common.message.OffsetCommitResponseData"""

    class OffsetCommitResponsePartition(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")

    class OffsetCommitResponseTopic(Struct):
        name: str = string("0+")
        partitions: list[OffsetCommitResponse.OffsetCommitResponsePartition] = array(
            "OffsetCommitResponsePartition", "0+"
        )

    throttle_time_ms: int = int32("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = array("OffsetCommitResponseTopic", "0+")
