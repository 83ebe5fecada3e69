"""JoinGroup: become a member of a consumer group, or start its next generation."""

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


class JoinGroupRequest(
    Message, api_key=ApiKeys.JOIN_GROUP, versions="0-9", flexible="6+", deprecated="0-1"
):
    """Ports: org.apache.kafka.common.message.JoinGroupRequestData"""

    class JoinGroupRequestProtocol(Struct):
        name: str = string("0+")
        metadata: bytes = bytes_("0+")

    group_id: str = string("0+")
    session_timeout_ms: int = int32("0+")
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string("0+")
    protocols: list[JoinGroupRequestProtocol] = array("JoinGroupRequestProtocol", "0+")
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponse(Message, api_key=ApiKeys.JOIN_GROUP, versions="0-9", flexible="6+"):
    """Ports: org.apache.kafka.common.message.JoinGroupResponseData"""

    class JoinGroupResponseMember(Struct):
        member_id: str = string("0+")
        group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
        metadata: bytes = bytes_("0+")

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16("0+")
    generation_id: int = int32("0+", default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string("0+", nullable="7+")
    leader: str = string("0+")
    skip_assignment: bool = bool_("9+")
    member_id: str = string("0+")
    members: list[JoinGroupResponseMember] = array("JoinGroupResponseMember", "0+")
