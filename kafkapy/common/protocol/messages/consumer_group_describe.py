"""ConsumerGroupDescribe: show groups of the newer group protocol."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class ConsumerGroupDescribeRequest(
    Message, api_key=ApiKeys.CONSUMER_GROUP_DESCRIBE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ConsumerGroupDescribeRequestData"""

    group_ids: list[str] = array(string, "0+")
    include_authorized_operations: bool = bool_("0+")


class ConsumerGroupDescribeResponse(
    Message, api_key=ApiKeys.CONSUMER_GROUP_DESCRIBE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ConsumerGroupDescribeResponseData"""

    class TopicPartitions(Struct):
        topic_id: UUID = uuid("0+")
        topic_name: str = string("0+")
        partitions: list[int] = array(int32, "0+")

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = array(
            "TopicPartitions", "0+"
        )

    class Member(Struct):
        member_id: str = string("0+")
        instance_id: str | None = string("0+", nullable="0+", default=None)
        rack_id: str | None = string("0+", nullable="0+", default=None)
        member_epoch: int = int32("0+")
        client_id: str = string("0+")
        client_host: str = string("0+")
        subscribed_topic_names: list[str] = array(string, "0+")
        subscribed_topic_regex: str | None = string("0+", nullable="0+", default=None)
        assignment: ConsumerGroupDescribeResponse.Assignment = struct("Assignment", "0+")
        target_assignment: ConsumerGroupDescribeResponse.Assignment = struct("Assignment", "0+")

    class DescribedGroup(Struct):
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+", default=None)
        group_id: str = string("0+")
        group_state: str = string("0+")
        group_epoch: int = int32("0+")
        assignment_epoch: int = int32("0+")
        assignor_name: str = string("0+")
        members: list[ConsumerGroupDescribeResponse.Member] = array("Member", "0+")
        authorized_operations: int = int32("0+", default=-2147483648)

    throttle_time_ms: int = int32("0+")
    groups: list[DescribedGroup] = array("DescribedGroup", "0+")
