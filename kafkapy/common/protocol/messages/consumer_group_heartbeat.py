"""ConsumerGroupHeartbeat: join, keep alive, reconcile and leave under the newer group protocol."""

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


class ConsumerGroupHeartbeatRequest(
    Message, api_key=ApiKeys.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData"""

    class TopicPartitions(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[int] = array(int32, "0+")

    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    subscribed_topic_names: list[str] | None = array(string, "0+", nullable="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string("0+", nullable="0+", default=None)
    topic_partitions: list[TopicPartitions] | None = array(
        "TopicPartitions", "0+", nullable="0+", default=None
    )


class ConsumerGroupHeartbeatResponse(
    Message, api_key=ApiKeys.CONSUMER_GROUP_HEARTBEAT, versions="0-1", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData"""

    class TopicPartitions(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[int] = array(int32, "0+")

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = array(
            "TopicPartitions", "0+"
        )

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+", default=None)
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    assignment: Assignment | None = struct("Assignment", "0+", nullable="0+", default=None)
