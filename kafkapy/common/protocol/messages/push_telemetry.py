"""PushTelemetry: send client metrics to the broker."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, bool_, bytes_, int8, int16, int32, uuid


class PushTelemetryRequest(Message, api_key=ApiKeys.PUSH_TELEMETRY, versions="0", flexible="0+"):
    """Ports: org.apache.kafka.common.message.PushTelemetryRequestData"""

    client_instance_id: UUID = uuid("0+")
    subscription_id: int = int32("0+")
    terminating: bool = bool_("0+")
    compression_type: int = int8("0+")
    metrics: bytes = bytes_("0+")


class PushTelemetryResponse(Message, api_key=ApiKeys.PUSH_TELEMETRY, versions="0", flexible="0+"):
    """Ports: org.apache.kafka.common.message.PushTelemetryResponseData"""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
