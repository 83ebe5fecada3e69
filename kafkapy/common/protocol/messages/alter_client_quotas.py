"""AlterClientQuotas: change quotas of users, clients and addresses."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    float64,
    int16,
    int32,
    string,
)


class AlterClientQuotasRequest(
    Message, api_key=ApiKeys.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.AlterClientQuotasRequestData"""

    class EntityData(Struct):
        entity_type: str = string("0+")
        entity_name: str | None = string("0+", nullable="0+")

    class OpData(Struct):
        key: str = string("0+")
        value: float = float64("0+")
        remove: bool = bool_("0+")

    class EntryData(Struct):
        entity: list[AlterClientQuotasRequest.EntityData] = array("EntityData", "0+")
        ops: list[AlterClientQuotasRequest.OpData] = array("OpData", "0+")

    entries: list[EntryData] = array("EntryData", "0+")
    validate_only: bool = bool_("0+")


class AlterClientQuotasResponse(
    Message, api_key=ApiKeys.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.AlterClientQuotasResponseData"""

    class EntityData(Struct):
        entity_type: str = string("0+")
        entity_name: str | None = string("0+", nullable="0+")

    class EntryData(Struct):
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")
        entity: list[AlterClientQuotasResponse.EntityData] = array("EntityData", "0+")

    throttle_time_ms: int = int32("0+")
    entries: list[EntryData] = array("EntryData", "0+")
