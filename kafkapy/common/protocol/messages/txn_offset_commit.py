"""TxnOffsetCommit: store group offsets as a part of a transaction."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, int64, string


class TxnOffsetCommitRequest(
    Message, api_key=ApiKeys.TXN_OFFSET_COMMIT, versions="0-4", flexible="3+"
):
    """Ports: org.apache.kafka.common.message.TxnOffsetCommitRequestData"""

    class TxnOffsetCommitRequestPartition(Struct):
        partition_index: int = int32("0+")
        committed_offset: int = int64("0+")
        committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
        committed_metadata: str | None = string("0+", nullable="0+")

    class TxnOffsetCommitRequestTopic(Struct):
        name: str = string("0+")
        partitions: list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition] = array(
            "TxnOffsetCommitRequestPartition", "0+"
        )

    transactional_id: str = string("0+")
    group_id: str = string("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array("TxnOffsetCommitRequestTopic", "0+")


class TxnOffsetCommitResponse(
    Message, api_key=ApiKeys.TXN_OFFSET_COMMIT, versions="0-4", flexible="3+"
):
    """Ports: org.apache.kafka.common.message.TxnOffsetCommitResponseData"""

    class TxnOffsetCommitResponsePartition(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")

    class TxnOffsetCommitResponseTopic(Struct):
        name: str = string("0+")
        partitions: list[TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition] = array(
            "TxnOffsetCommitResponsePartition", "0+"
        )

    throttle_time_ms: int = int32("0+")
    topics: list[TxnOffsetCommitResponseTopic] = array("TxnOffsetCommitResponseTopic", "0+")
