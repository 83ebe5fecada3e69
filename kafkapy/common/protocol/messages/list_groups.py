"""ListGroups: list the groups that a broker coordinates."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string


class ListGroupsRequest(Message, api_key=ApiKeys.LIST_GROUPS, versions="0-5", flexible="3+"):
    """Ports: org.apache.kafka.common.message.ListGroupsRequestData"""

    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")


class ListGroupsResponse(Message, api_key=ApiKeys.LIST_GROUPS, versions="0-5", flexible="3+"):
    """Ports: org.apache.kafka.common.message.ListGroupsResponseData"""

    class ListedGroup(Struct):
        group_id: str = string("0+")
        protocol_type: str = string("0+")
        group_state: str = string("4+", ignorable=True)
        group_type: str = string("5+", ignorable=True)

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    groups: list[ListedGroup] = array("ListedGroup", "0+")
