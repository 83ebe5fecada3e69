"""SaslAuthenticate: carry the exchanges of the chosen SASL mechanism."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, bytes_, int16, int64, string


class SaslAuthenticateRequest(
    Message, api_key=ApiKeys.SASL_AUTHENTICATE, versions="0-2", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.SaslAuthenticateRequestData"""

    auth_bytes: bytes = bytes_("0+")


class SaslAuthenticateResponse(
    Message, api_key=ApiKeys.SASL_AUTHENTICATE, versions="0-2", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.SaslAuthenticateResponseData"""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    auth_bytes: bytes = bytes_("0+")
    session_lifetime_ms: int = int64("1+", ignorable=True)
