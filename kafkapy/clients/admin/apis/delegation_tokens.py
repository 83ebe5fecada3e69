"""Delegation tokens: making, showing, prolonging and ending them."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.clients.admin.admin_api_handler import SingleHandler, raise_for
from kafkapy.clients.admin.delegation_token import DelegationToken
from kafkapy.clients.admin.lookup_strategy import at_any_broker
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkapy.common.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkapy.common.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kafkapy.common.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kafkapy.common.security.kafka_principal import KafkaPrincipal

_FIRST_VERSION_WITH_OWNER = 3


class CreateDelegationTokenHandler(SingleHandler[DelegationToken, CreateDelegationTokenResponse]):
    call_name = "create_delegation_token"

    def __init__(
        self,
        *,
        owner: KafkaPrincipal | None,
        renewers: Iterable[KafkaPrincipal],
        max_lifetime_ms: int,
    ) -> None:
        super().__init__(at_any_broker())
        self._owner = owner
        self._renewers = tuple(renewers)
        self._max_lifetime_ms = max_lifetime_ms

    def build(self, timeout_ms: int) -> VersionedRequest:
        owner = self._owner
        return VersionedRequest(
            CreateDelegationTokenRequest(
                owner_principal_type="" if owner is None else owner.principal_type,
                owner_principal_name="" if owner is None else owner.name,
                renewers=[
                    CreateDelegationTokenRequest.CreatableRenewers(
                        principal_type=renewer.principal_type, principal_name=renewer.name
                    )
                    for renewer in self._renewers
                ],
                max_lifetime_ms=self._max_lifetime_ms,
            ),
            min_version=None if owner is None else _FIRST_VERSION_WITH_OWNER,
        )

    def read(self, response: CreateDelegationTokenResponse) -> DelegationToken:
        raise_for(response.error_code)
        owner = KafkaPrincipal(response.principal_type, response.principal_name)
        return DelegationToken(
            response.token_id,
            bytes(response.hmac),
            owner,
            _requester(response, owner),
            self._renewers,
            response.issue_timestamp_ms,
            response.max_timestamp_ms,
            response.expiry_timestamp_ms,
        )


class DescribeDelegationTokenHandler(
    SingleHandler[list[DelegationToken], DescribeDelegationTokenResponse]
):
    """Those of the owners, or all that may be seen."""

    call_name = "describe_delegation_token"

    def __init__(self, owners: Iterable[KafkaPrincipal] | None) -> None:
        super().__init__(at_any_broker())
        self._owners = None if owners is None else tuple(owners)

    def build(self, timeout_ms: int) -> VersionedRequest:
        owners = None
        if self._owners is not None:
            owners = [
                DescribeDelegationTokenRequest.DescribeDelegationTokenOwner(
                    principal_type=owner.principal_type, principal_name=owner.name
                )
                for owner in self._owners
            ]
        return VersionedRequest(DescribeDelegationTokenRequest(owners=owners))

    def read(self, response: DescribeDelegationTokenResponse) -> list[DelegationToken]:
        raise_for(response.error_code)
        tokens = []
        for token in response.tokens:
            owner = KafkaPrincipal(token.principal_type, token.principal_name)
            tokens.append(
                DelegationToken(
                    token.token_id,
                    bytes(token.hmac),
                    owner,
                    _requester(token, owner),
                    tuple(
                        KafkaPrincipal(renewer.principal_type, renewer.principal_name)
                        for renewer in token.renewers
                    ),
                    token.issue_timestamp,
                    token.max_timestamp,
                    token.expiry_timestamp,
                )
            )
        return tokens


class RenewDelegationTokenHandler(SingleHandler[int, RenewDelegationTokenResponse]):
    """The value is when the token expires now."""

    call_name = "renew_delegation_token"

    def __init__(self, hmac: bytes, renew_period_ms: int) -> None:
        super().__init__(at_any_broker())
        self._request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_period_ms)

    def build(self, timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(self._request)

    def read(self, response: RenewDelegationTokenResponse) -> int:
        raise_for(response.error_code)
        return response.expiry_timestamp_ms


class ExpireDelegationTokenHandler(SingleHandler[int, ExpireDelegationTokenResponse]):
    """The value is when the token expires now."""

    call_name = "expire_delegation_token"

    def __init__(self, hmac: bytes, expiry_period_ms: int) -> None:
        super().__init__(at_any_broker())
        self._request = ExpireDelegationTokenRequest(
            hmac=hmac, expiry_time_period_ms=expiry_period_ms
        )

    def build(self, timeout_ms: int) -> VersionedRequest:
        return VersionedRequest(self._request)

    def read(self, response: ExpireDelegationTokenResponse) -> int:
        raise_for(response.error_code)
        return response.expiry_timestamp_ms


def _requester(
    token: CreateDelegationTokenResponse | DescribeDelegationTokenResponse.DescribedDelegationToken,
    owner: KafkaPrincipal,
) -> KafkaPrincipal:
    """Brokers that do not tell let nobody ask for others."""
    if not token.token_requester_principal_name:
        return owner
    return KafkaPrincipal(
        token.token_requester_principal_type, token.token_requester_principal_name
    )
