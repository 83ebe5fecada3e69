"""RenewDelegationToken: extend the life of a delegation token."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, bytes_, int16, int32, int64


class RenewDelegationTokenRequest(
    Message, api_key=ApiKeys.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.RenewDelegationTokenRequestData"""

    hmac: bytes = bytes_("0+")
    renew_period_ms: int = int64("0+")


class RenewDelegationTokenResponse(
    Message, api_key=ApiKeys.RENEW_DELEGATION_TOKEN, versions="0-2", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.RenewDelegationTokenResponseData"""

    error_code: int = int16("0+")
    expiry_timestamp_ms: int = int64("0+")
    throttle_time_ms: int = int32("0+")
