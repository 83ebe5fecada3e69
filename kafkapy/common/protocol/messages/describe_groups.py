"""DescribeGroups: show the state and the members of groups."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    bytes_,
    int16,
    int32,
    string,
)


class DescribeGroupsRequest(
    Message, api_key=ApiKeys.DESCRIBE_GROUPS, versions="0-5", flexible="5+"
):
    """Ports: org.apache.kafka.common.message.DescribeGroupsRequestData"""

    groups: list[str] = array(string, "0+")
    include_authorized_operations: bool = bool_("3+")


class DescribeGroupsResponse(
    Message, api_key=ApiKeys.DESCRIBE_GROUPS, versions="0-5", flexible="5+"
):
    """Ports: org.apache.kafka.common.message.DescribeGroupsResponseData"""

    class DescribedGroupMember(Struct):
        member_id: str = string("0+")
        group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
        client_id: str = string("0+")
        client_host: str = string("0+")
        member_metadata: bytes = bytes_("0+")
        member_assignment: bytes = bytes_("0+")

    class DescribedGroup(Struct):
        error_code: int = int16("0+")
        group_id: str = string("0+")
        group_state: str = string("0+")
        protocol_type: str = string("0+")
        protocol_data: str = string("0+")
        members: list[DescribeGroupsResponse.DescribedGroupMember] = array(
            "DescribedGroupMember", "0+"
        )
        authorized_operations: int = int32("3+", default=-2147483648)

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array("DescribedGroup", "0+")
