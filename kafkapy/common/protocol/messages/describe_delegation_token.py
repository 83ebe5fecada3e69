"""DescribeDelegationToken: list delegation tokens by owner."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bytes_,
    int16,
    int32,
    int64,
    string,
)


class DescribeDelegationTokenRequest(
    Message,
    api_key=ApiKeys.DESCRIBE_DELEGATION_TOKEN,
    versions="0-3",
    flexible="2+",
    deprecated="0",
):
    """Ports: org.apache.kafka.common.message.DescribeDelegationTokenRequestData"""

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = string("0+")
        principal_name: str = string("0+")

    owners: list[DescribeDelegationTokenOwner] | None = array(
        "DescribeDelegationTokenOwner", "0+", nullable="0+"
    )


class DescribeDelegationTokenResponse(
    Message, api_key=ApiKeys.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.DescribeDelegationTokenResponseData"""

    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str = string("0+")
        principal_name: str = string("0+")

    class DescribedDelegationToken(Struct):
        principal_type: str = string("0+")
        principal_name: str = string("0+")
        token_requester_principal_type: str = string("3+")
        token_requester_principal_name: str = string("3+")
        issue_timestamp: int = int64("0+")
        expiry_timestamp: int = int64("0+")
        max_timestamp: int = int64("0+")
        token_id: str = string("0+")
        hmac: bytes = bytes_("0+")
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = array(
            "DescribedDelegationTokenRenewer", "0+"
        )

    error_code: int = int16("0+")
    tokens: list[DescribedDelegationToken] = array("DescribedDelegationToken", "0+")
    throttle_time_ms: int = int32("0+")
