"""AlterConfigs: replace all settings of resources."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, bool_, int8, int16, int32, string


class AlterConfigsRequest(Message, api_key=ApiKeys.ALTER_CONFIGS, versions="0-2", flexible="2+"):
    """Ports: org.apache.kafka.common.message.AlterConfigsRequestData"""

    class AlterableConfig(Struct):
        name: str = string("0+")
        value: str | None = string("0+", nullable="0+")

    class AlterConfigsResource(Struct):
        resource_type: int = int8("0+")
        resource_name: str = string("0+")
        configs: list[AlterConfigsRequest.AlterableConfig] = array("AlterableConfig", "0+")

    resources: list[AlterConfigsResource] = array("AlterConfigsResource", "0+")
    validate_only: bool = bool_("0+")


class AlterConfigsResponse(Message, api_key=ApiKeys.ALTER_CONFIGS, versions="0-2", flexible="2+"):
    """Ports: org.apache.kafka.common.message.AlterConfigsResponseData"""

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")
        resource_type: int = int8("0+")
        resource_name: str = string("0+")

    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResourceResponse] = array("AlterConfigsResourceResponse", "0+")
