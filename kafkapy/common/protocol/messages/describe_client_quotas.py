"""DescribeClientQuotas: list the quotas of users, clients and addresses."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    float64,
    int8,
    int16,
    int32,
    string,
)


class DescribeClientQuotasRequest(
    Message, api_key=ApiKeys.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.DescribeClientQuotasRequestData"""

    class ComponentData(Struct):
        entity_type: str = string("0+")
        match_type: int = int8("0+")
        match: str | None = string("0+", nullable="0+")

    components: list[ComponentData] = array("ComponentData", "0+")
    strict: bool = bool_("0+")


class DescribeClientQuotasResponse(
    Message, api_key=ApiKeys.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.DescribeClientQuotasResponseData"""

    class EntityData(Struct):
        entity_type: str = string("0+")
        entity_name: str | None = string("0+", nullable="0+")

    class ValueData(Struct):
        key: str = string("0+")
        value: float = float64("0+")

    class EntryData(Struct):
        entity: list[DescribeClientQuotasResponse.EntityData] = array("EntityData", "0+")
        values: list[DescribeClientQuotasResponse.ValueData] = array("ValueData", "0+")

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    entries: list[EntryData] | None = array("EntryData", "0+", nullable="0+")
