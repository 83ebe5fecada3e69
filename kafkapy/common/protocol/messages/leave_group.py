"""LeaveGroup: give up group memberships."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string


class LeaveGroupRequest(Message, api_key=ApiKeys.LEAVE_GROUP, versions="0-5", flexible="4+"):
    """Ports: org.apache.kafka.common.message.LeaveGroupRequestData"""

    class MemberIdentity(Struct):
        member_id: str = string("3+")
        group_instance_id: str | None = string("3+", nullable="3+", default=None)
        reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)

    group_id: str = string("0+")
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array("MemberIdentity", "3+")


class LeaveGroupResponse(Message, api_key=ApiKeys.LEAVE_GROUP, versions="0-5", flexible="4+"):
    """Ports: org.apache.kafka.common.message.LeaveGroupResponseData"""

    class MemberResponse(Struct):
        member_id: str = string("3+")
        group_instance_id: str | None = string("3+", nullable="3+")
        error_code: int = int16("3+")

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    members: list[MemberResponse] = array("MemberResponse", "3+")
