"""ExpireDelegationToken: change when a delegation token expires, or end it at once."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, bytes_, int16, int32, int64


class ExpireDelegationTokenRequest(
    Message, api_key=ApiKeys.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.ExpireDelegationTokenRequestData"""

    hmac: bytes = bytes_("0+")
    expiry_time_period_ms: int = int64("0+")


class ExpireDelegationTokenResponse(
    Message, api_key=ApiKeys.EXPIRE_DELEGATION_TOKEN, versions="0-2", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.ExpireDelegationTokenResponseData"""

    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
