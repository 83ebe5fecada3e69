"""CreateAcls: add access rules."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int8, int16, int32, string


class CreateAclsRequest(
    Message, api_key=ApiKeys.CREATE_ACLS, versions="0-3", flexible="2+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.CreateAclsRequestData"""

    class AclCreation(Struct):
        resource_type: int = int8("0+")
        resource_name: str = string("0+")
        resource_pattern_type: int = int8("1+", default=3)
        principal: str = string("0+")
        host: str = string("0+")
        operation: int = int8("0+")
        permission_type: int = int8("0+")

    creations: list[AclCreation] = array("AclCreation", "0+")


class CreateAclsResponse(Message, api_key=ApiKeys.CREATE_ACLS, versions="0-3", flexible="2+"):
    """Ports: org.apache.kafka.common.message.CreateAclsResponseData"""

    class AclCreationResult(Struct):
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")

    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array("AclCreationResult", "0+")
