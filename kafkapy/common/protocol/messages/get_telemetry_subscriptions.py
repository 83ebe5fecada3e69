"""GetTelemetrySubscriptions: ask which client metrics the broker wants."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, array, bool_, int8, int16, int32, string, uuid


class GetTelemetrySubscriptionsRequest(
    Message, api_key=ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.GetTelemetrySubscriptionsRequestData"""

    client_instance_id: UUID = uuid("0+")


class GetTelemetrySubscriptionsResponse(
    Message, api_key=ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.GetTelemetrySubscriptionsResponseData"""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    client_instance_id: UUID = uuid("0+")
    subscription_id: int = int32("0+")
    accepted_compression_types: list[int] = array(int8, "0+")
    push_interval_ms: int = int32("0+")
    telemetry_max_bytes: int = int32("0+")
    delta_temporality: bool = bool_("0+")
    requested_metrics: list[str] = array(string, "0+")
