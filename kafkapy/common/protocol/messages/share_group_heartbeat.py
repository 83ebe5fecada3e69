"""ShareGroupHeartbeat: join, keep alive and leave a share group."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class ShareGroupHeartbeatRequest(
    Message, api_key=ApiKeys.SHARE_GROUP_HEARTBEAT, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ShareGroupHeartbeatRequestData"""

    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    rack_id: str | None = string("0+", nullable="0+", default=None)
    subscribed_topic_names: list[str] | None = array(string, "0+", nullable="0+", default=None)


class ShareGroupHeartbeatResponse(
    Message, api_key=ApiKeys.SHARE_GROUP_HEARTBEAT, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ShareGroupHeartbeatResponseData"""

    class TopicPartitions(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[int] = array(int32, "0+")

    class Assignment(Struct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = array(
            "TopicPartitions", "0+"
        )

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = struct("Assignment", "0+", nullable="0+", default=None)
