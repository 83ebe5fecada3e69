"""Envelope: a broker forwards the request of a client to the controller."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, bytes_, int16


class EnvelopeRequest(Message, api_key=ApiKeys.ENVELOPE, versions="0", flexible="0+"):
    """Ports: org.apache.kafka.common.message.EnvelopeRequestData"""

    request_data: bytes = bytes_("0+")
    request_principal: bytes | None = bytes_("0+", nullable="0+")
    client_host_address: bytes = bytes_("0+")


class EnvelopeResponse(Message, api_key=ApiKeys.ENVELOPE, versions="0", flexible="0+"):
    """Ports: org.apache.kafka.common.message.EnvelopeResponseData"""

    response_data: bytes | None = bytes_("0+", nullable="0+", default=None)
    error_code: int = int16("0+")
