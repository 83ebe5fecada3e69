"""UnregisterBroker: remove the registration of a broker."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, int16, int32, string


class UnregisterBrokerRequest(
    Message, api_key=ApiKeys.UNREGISTER_BROKER, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.UnregisterBrokerRequestData"""

    broker_id: int = int32("0+")


class UnregisterBrokerResponse(
    Message, api_key=ApiKeys.UNREGISTER_BROKER, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.UnregisterBrokerResponseData"""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
