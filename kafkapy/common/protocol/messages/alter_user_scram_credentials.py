"""AlterUserScramCredentials: set or remove SCRAM credentials of users."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bytes_,
    int8,
    int16,
    int32,
    string,
)


class AlterUserScramCredentialsRequest(
    Message, api_key=ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AlterUserScramCredentialsRequestData"""

    class ScramCredentialDeletion(Struct):
        name: str = string("0+")
        mechanism: int = int8("0+")

    class ScramCredentialUpsertion(Struct):
        name: str = string("0+")
        mechanism: int = int8("0+")
        iterations: int = int32("0+")
        salt: bytes = bytes_("0+")
        salted_password: bytes = bytes_("0+")

    deletions: list[ScramCredentialDeletion] = array("ScramCredentialDeletion", "0+")
    upsertions: list[ScramCredentialUpsertion] = array("ScramCredentialUpsertion", "0+")


class AlterUserScramCredentialsResponse(
    Message, api_key=ApiKeys.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AlterUserScramCredentialsResponseData"""

    class AlterUserScramCredentialsResult(Struct):
        user: str = string("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")

    throttle_time_ms: int = int32("0+")
    results: list[AlterUserScramCredentialsResult] = array("AlterUserScramCredentialsResult", "0+")
