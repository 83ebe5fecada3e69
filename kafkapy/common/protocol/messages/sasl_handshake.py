"""SaslHandshake: choose the SASL mechanism of a connection."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, array, int16, string


class SaslHandshakeRequest(
    Message, api_key=ApiKeys.SASL_HANDSHAKE, versions="0-1", flexible="none", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.SaslHandshakeRequestData"""

    mechanism: str = string("0+")


class SaslHandshakeResponse(
    Message, api_key=ApiKeys.SASL_HANDSHAKE, versions="0-1", flexible="none"
):
    """Ports: org.apache.kafka.common.message.SaslHandshakeResponseData"""

    error_code: int = int16("0+")
    mechanisms: list[str] = array(string, "0+")
