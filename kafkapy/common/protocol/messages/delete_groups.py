"""DeleteGroups: delete empty groups with their offsets."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string


class DeleteGroupsRequest(
    Message, api_key=ApiKeys.DELETE_GROUPS, versions="0-2", flexible="2+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.DeleteGroupsRequestData"""

    groups_names: list[str] = array(string, "0+")


class DeleteGroupsResponse(Message, api_key=ApiKeys.DELETE_GROUPS, versions="0-2", flexible="2+"):
    """Ports: org.apache.kafka.common.message.DeleteGroupsResponseData"""

    class DeletableGroupResult(Struct):
        group_id: str = string("0+")
        error_code: int = int16("0+")

    throttle_time_ms: int = int32("0+")
    results: list[DeletableGroupResult] = array("DeletableGroupResult", "0+")
