"""DescribeConfigs: read the settings of topics, brokers and other resources."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, bool_, int8, int16, int32, string


class DescribeConfigsRequest(
    Message, api_key=ApiKeys.DESCRIBE_CONFIGS, versions="0-4", flexible="4+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.DescribeConfigsRequestData"""

    class DescribeConfigsResource(Struct):
        resource_type: int = int8("0+")
        resource_name: str = string("0+")
        configuration_keys: list[str] | None = array(string, "0+", nullable="0+")

    resources: list[DescribeConfigsResource] = array("DescribeConfigsResource", "0+")
    include_synonyms: bool = bool_("1+")
    include_documentation: bool = bool_("3+")


class DescribeConfigsResponse(
    Message, api_key=ApiKeys.DESCRIBE_CONFIGS, versions="0-4", flexible="4+"
):
    """Ports: org.apache.kafka.common.message.DescribeConfigsResponseData"""

    class DescribeConfigsSynonym(Struct):
        name: str = string("1+")
        value: str | None = string("1+", nullable="0+")
        source: int = int8("1+")

    class DescribeConfigsResourceResult(Struct):
        name: str = string("0+")
        value: str | None = string("0+", nullable="0+")
        read_only: bool = bool_("0+")
        is_default: bool = bool_("0")
        config_source: int = int8("1+", default=-1, ignorable=True)
        is_sensitive: bool = bool_("0+")
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = array(
            "DescribeConfigsSynonym", "1+", ignorable=True
        )
        config_type: int = int8("3+", ignorable=True)
        documentation: str | None = string("3+", nullable="0+", ignorable=True)

    class DescribeConfigsResult(Struct):
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")
        resource_type: int = int8("0+")
        resource_name: str = string("0+")
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = array(
            "DescribeConfigsResourceResult", "0+"
        )

    throttle_time_ms: int = int32("0+")
    results: list[DescribeConfigsResult] = array("DescribeConfigsResult", "0+")
