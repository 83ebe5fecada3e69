"""SCRAM credentials: showing and changing them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from kafkapy.clients.admin.admin_api_handler import (
    AdminApiHandler,
    ApiResult,
    SingleHandler,
    raise_for,
)
from kafkapy.clients.admin.lookup_strategy import at_any_broker, at_controller
from kafkapy.clients.admin.results import Results
from kafkapy.clients.admin.user_scram_credential import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.errors import Errors, KafkaError
from kafkapy.common.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kafkapy.common.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kafkapy.metadata.broker import Node


class DescribeUserScramCredentialsHandler(
    SingleHandler[
        Results[str, tuple[ScramCredentialInfo, ...]], DescribeUserScramCredentialsResponse
    ]
):
    """Of the users, or of all that have some."""

    call_name = "describe_user_scram_credentials"

    def __init__(self, users: Iterable[str] | None) -> None:
        super().__init__(at_any_broker())
        if isinstance(users, str):
            raise TypeError(f"expected a list of users, not the one user {users!r}")
        self._users = None if users is None else tuple(dict.fromkeys(users))

    def build(self, timeout_ms: int) -> VersionedRequest:
        users = None
        if self._users is not None:
            users = [
                DescribeUserScramCredentialsRequest.UserName(name=name) for name in self._users
            ]
        return VersionedRequest(DescribeUserScramCredentialsRequest(users=users))

    def read(
        self, response: DescribeUserScramCredentialsResponse
    ) -> Results[str, tuple[ScramCredentialInfo, ...]]:
        raise_for(response.error_code, response.error_message)
        successes: dict[str, tuple[ScramCredentialInfo, ...]] = {}
        errors: dict[str, KafkaError] = {}
        for result in response.results:
            error = Errors.for_code(result.error_code)
            if error is Errors.NONE:
                successes[result.user] = tuple(
                    ScramCredentialInfo(ScramMechanism(info.mechanism), info.iterations)
                    for info in result.credential_infos
                )
            else:
                errors[result.user] = error.exception(result.error_message)
        return Results(tuple(r.user for r in response.results), successes, errors)


class AlterUserScramCredentialsHandler(
    AdminApiHandler[str, None, AlterUserScramCredentialsResponse]
):
    """Keyed by user, who may have one credential of each mechanism."""

    call_name = "alter_user_scram_credentials"
    unmapping = frozenset({Errors.NOT_CONTROLLER})

    def __init__(self, alterations: Iterable[UserScramCredentialAlteration]) -> None:
        super().__init__(at_controller())
        self._alterations: dict[str, list[UserScramCredentialAlteration]] = {}
        for alteration in alterations:
            self._alterations.setdefault(alteration.user, []).append(alteration)

    @property
    def users(self) -> list[str]:
        return list(self._alterations)

    def build_request(self, keys: Sequence[str], timeout_ms: int) -> VersionedRequest:
        request = AlterUserScramCredentialsRequest()
        for key in keys:
            for alteration in self._alterations[key]:
                match alteration:
                    case UserScramCredentialDeletion():
                        request.deletions.append(
                            AlterUserScramCredentialsRequest.ScramCredentialDeletion(
                                name=alteration.user, mechanism=alteration.mechanism
                            )
                        )
                    case UserScramCredentialUpsertion():
                        request.upsertions.append(_upsertion(alteration))
        return VersionedRequest(request)

    def handle_response(
        self, keys: Sequence[str], response: AlterUserScramCredentialsResponse, node: Node
    ) -> ApiResult[str, None]:
        result = self.new_result()
        for altered in response.results:
            result.file(altered.user, altered.error_code, None, altered.error_message)
        return result


def _upsertion(
    upsertion: UserScramCredentialUpsertion,
) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    password = upsertion.password
    if isinstance(password, str):
        password = password.encode()
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=upsertion.user,
        mechanism=upsertion.mechanism,
        iterations=upsertion.iterations,
        salt=upsertion.salt,
        salted_password=hashlib.pbkdf2_hmac(
            upsertion.mechanism.hash_name, password, upsertion.salt, upsertion.iterations
        ),
    )
