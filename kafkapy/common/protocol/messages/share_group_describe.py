"""ShareGroupDescribe: show share groups."""

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


class ShareGroupDescribeRequest(
    Message, api_key=ApiKeys.SHARE_GROUP_DESCRIBE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ShareGroupDescribeRequestData"""

    group_ids: list[str] = array(string, "0+")
    include_authorized_operations: bool = bool_("0+")


class ShareGroupDescribeResponse(
    Message, api_key=ApiKeys.SHARE_GROUP_DESCRIBE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ShareGroupDescribeResponseData"""

    class TopicPartitions(Struct):
        topic_id: UUID = uuid("0+")
        topic_name: str = string("0+")
        partitions: list[int] = array(int32, "0+")

    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = array(
            "TopicPartitions", "0+"
        )

    class Member(Struct):
        member_id: str = string("0+")
        rack_id: str | None = string("0+", nullable="0+", default=None)
        member_epoch: int = int32("0+")
        client_id: str = string("0+")
        client_host: str = string("0+")
        subscribed_topic_names: list[str] = array(string, "0+")
        assignment: ShareGroupDescribeResponse.Assignment = struct("Assignment", "0+")

    class DescribedGroup(Struct):
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+", default=None)
        group_id: str = string("0+")
        group_state: str = string("0+")
        group_epoch: int = int32("0+")
        assignment_epoch: int = int32("0+")
        assignor_name: str = string("0+")
        members: list[ShareGroupDescribeResponse.Member] = array("Member", "0+")
        authorized_operations: int = int32("0+", default=-2147483648)

    throttle_time_ms: int = int32("0+")
    groups: list[DescribedGroup] = array("DescribedGroup", "0+")
