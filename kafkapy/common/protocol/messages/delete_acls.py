"""DeleteAcls: remove the access rules that match filters."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int8, int16, int32, string


class DeleteAclsRequest(
    Message, api_key=ApiKeys.DELETE_ACLS, versions="0-3", flexible="2+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.DeleteAclsRequestData"""

    class DeleteAclsFilter(Struct):
        resource_type_filter: int = int8("0+")
        resource_name_filter: str | None = string("0+", nullable="0+")
        pattern_type_filter: int = int8("1+", default=3)
        principal_filter: str | None = string("0+", nullable="0+")
        host_filter: str | None = string("0+", nullable="0+")
        operation: int = int8("0+")
        permission_type: int = int8("0+")

    filters: list[DeleteAclsFilter] = array("DeleteAclsFilter", "0+")


class DeleteAclsResponse(Message, api_key=ApiKeys.DELETE_ACLS, versions="0-3", flexible="2+"):
    """Ports: org.apache.kafka.common.message.DeleteAclsResponseData"""

    class DeleteAclsMatchingAcl(Struct):
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")
        resource_type: int = int8("0+")
        resource_name: str = string("0+")
        pattern_type: int = int8("1+", default=3)
        principal: str = string("0+")
        host: str = string("0+")
        operation: int = int8("0+")
        permission_type: int = int8("0+")

    class DeleteAclsFilterResult(Struct):
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")
        matching_acls: list[DeleteAclsResponse.DeleteAclsMatchingAcl] = array(
            "DeleteAclsMatchingAcl", "0+"
        )

    throttle_time_ms: int = int32("0+")
    filter_results: list[DeleteAclsFilterResult] = array("DeleteAclsFilterResult", "0+")
