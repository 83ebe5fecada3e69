"""OffsetForLeaderEpoch: find where the log of a leader epoch ends."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, int64, string


class OffsetForLeaderEpochRequest(
    Message,
    api_key=ApiKeys.OFFSET_FOR_LEADER_EPOCH,
    versions="0-4",
    flexible="4+",
    deprecated="0-1",
):
    """Ports: org.apache.kafka.common.message.OffsetForLeaderEpochRequestData"""

    class OffsetForLeaderPartition(Struct):
        partition: int = int32("0+")
        current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
        leader_epoch: int = int32("0+")

    class OffsetForLeaderTopic(Struct):
        topic: str = string("0+")
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = array(
            "OffsetForLeaderPartition", "0+"
        )

    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array("OffsetForLeaderTopic", "0+")


class OffsetForLeaderEpochResponse(
    Message, api_key=ApiKeys.OFFSET_FOR_LEADER_EPOCH, versions="0-4", flexible="4+"
):
    """Ports: org.apache.kafka.common.message.OffsetForLeaderEpochResponseData"""

    class EpochEndOffset(Struct):
        error_code: int = int16("0+")
        partition: int = int32("0+")
        leader_epoch: int = int32("1+", default=-1, ignorable=True)
        end_offset: int = int64("0+", default=-1)

    class OffsetForLeaderTopicResult(Struct):
        topic: str = string("0+")
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = array(
            "EpochEndOffset", "0+"
        )

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array("OffsetForLeaderTopicResult", "0+")
