"""DescribeUserScramCredentials: list the SCRAM mechanisms that users have credentials for."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int8, int16, int32, string


class DescribeUserScramCredentialsRequest(
    Message, api_key=ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.DescribeUserScramCredentialsRequestData"""

    class UserName(Struct):
        name: str = string("0+")

    users: list[UserName] | None = array("UserName", "0+", nullable="0+")


class DescribeUserScramCredentialsResponse(
    Message, api_key=ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.DescribeUserScramCredentialsResponseData"""

    class CredentialInfo(Struct):
        mechanism: int = int8("0+")
        iterations: int = int32("0+")

    class DescribeUserScramCredentialsResult(Struct):
        user: str = string("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = array(
            "CredentialInfo", "0+"
        )

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(
        "DescribeUserScramCredentialsResult", "0+"
    )
