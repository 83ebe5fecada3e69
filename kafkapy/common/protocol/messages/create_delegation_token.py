"""CreateDelegationToken: create a delegation token."""

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


class CreateDelegationTokenRequest(
    Message, api_key=ApiKeys.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.CreateDelegationTokenRequestData"""

    class CreatableRenewers(Struct):
        principal_type: str = string("0+")
        principal_name: str = string("0+")

    owner_principal_type: str | None = string("3+", nullable="3+")
    owner_principal_name: str | None = string("3+", nullable="3+")
    renewers: list[CreatableRenewers] = array("CreatableRenewers", "0+")
    max_lifetime_ms: int = int64("0+")


class CreateDelegationTokenResponse(
    Message, api_key=ApiKeys.CREATE_DELEGATION_TOKEN, versions="0-3", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.CreateDelegationTokenResponseData"""

    error_code: int = int16("0+")
    principal_type: str = string("0+")
    principal_name: str = string("0+")
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp_ms: int = int64("0+")
    expiry_timestamp_ms: int = int64("0+")
    max_timestamp_ms: int = int64("0+")
    token_id: str = string("0+")
    hmac: bytes = bytes_("0+")
    throttle_time_ms: int = int32("0+")
