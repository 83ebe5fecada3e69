"""IncrementalAlterConfigs: change single settings of resources."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, bool_, int8, int16, int32, string


class IncrementalAlterConfigsRequest(
    Message, api_key=ApiKeys.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.IncrementalAlterConfigsRequestData"""

    class AlterableConfig(Struct):
        name: str = string("0+")
        config_operation: int = int8("0+")
        value: str | None = string("0+", nullable="0+")

    class AlterConfigsResource(Struct):
        resource_type: int = int8("0+")
        resource_name: str = string("0+")
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = array(
            "AlterableConfig", "0+"
        )

    resources: list[AlterConfigsResource] = array("AlterConfigsResource", "0+")
    validate_only: bool = bool_("0+")


class IncrementalAlterConfigsResponse(
    Message, api_key=ApiKeys.INCREMENTAL_ALTER_CONFIGS, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.IncrementalAlterConfigsResponseData"""

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")
        resource_type: int = int8("0+")
        resource_name: str = string("0+")

    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResourceResponse] = array("AlterConfigsResourceResponse", "0+")
