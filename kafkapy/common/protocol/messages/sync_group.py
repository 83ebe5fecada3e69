"""SyncGroup: hand out, and receive, the assignment of a group generation."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, bytes_, int16, int32, string


class SyncGroupRequest(Message, api_key=ApiKeys.SYNC_GROUP, versions="0-5", flexible="4+"):
    """Ports: org.apache.kafka.common.message.SyncGroupRequestData"""

    class SyncGroupRequestAssignment(Struct):
        member_id: str = string("0+")
        assignment: bytes = bytes_("0+")

    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array("SyncGroupRequestAssignment", "0+")


class SyncGroupResponse(Message, api_key=ApiKeys.SYNC_GROUP, versions="0-5", flexible="4+"):
    """Ports: org.apache.kafka.common.message.SyncGroupResponseData"""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = bytes_("0+")
