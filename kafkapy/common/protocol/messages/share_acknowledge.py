"""ShareAcknowledge: acknowledge records read by a share group."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
    struct,
    uuid,
)


class ShareAcknowledgeRequest(
    Message, api_key=ApiKeys.SHARE_ACKNOWLEDGE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ShareAcknowledgeRequestData"""

    class AcknowledgementBatch(Struct):
        first_offset: int = int64("0+")
        last_offset: int = int64("0+")
        acknowledge_types: list[int] = array(int8, "0+")

    class AcknowledgePartition(Struct):
        partition_index: int = int32("0+")
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = array(
            "AcknowledgementBatch", "0+"
        )

    class AcknowledgeTopic(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = array(
            "AcknowledgePartition", "0+"
        )

    group_id: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+")
    share_session_epoch: int = int32("0+")
    topics: list[AcknowledgeTopic] = array("AcknowledgeTopic", "0+")


class ShareAcknowledgeResponse(
    Message, api_key=ApiKeys.SHARE_ACKNOWLEDGE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ShareAcknowledgeResponseData"""

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+")

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+", default=None)
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = struct("LeaderIdAndEpoch", "0+")

    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: UUID = uuid("0+", ignorable=True)
        partitions: list[ShareAcknowledgeResponse.PartitionData] = array("PartitionData", "0+")

    class NodeEndpoint(Struct):
        node_id: int = int32("0+")
        host: str = string("0+")
        port: int = int32("0+")
        rack: str | None = string("0+", nullable="0+", default=None)

    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+", ignorable=True)
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[ShareAcknowledgeTopicResponse] = array("ShareAcknowledgeTopicResponse", "0+")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", "0+")
