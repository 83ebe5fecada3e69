"""AdminClient: access rules, quotas, credentials and delegation tokens."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.clients.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ClientQuotaMatch,
    KafkaPrincipal,
    NewTopic,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafkapy.common.errors import (
    InvalidRequestError,
    ResourceNotFoundError,
    SecurityDisabledError,
    UnacceptableCredentialError,
    UnsupportedByAuthenticationError,
)
from kafkapy.common.protocol.api_keys import ApiKeys
from tests.clients.admins import admin_client, require_api
from tests.compat.brokers import Broker, start_broker

READ = AccessControlEntry("User:alice", "*", AclOperation.READ, AclPermissionType.ALLOW)
DENY = AccessControlEntry("User:bob", "10.0.0.1", AclOperation.ALL, AclPermissionType.DENY)
# What Apache Kafka needs in order to have rules at all.
AUTHORIZER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
    # Nobody kills it, so there is no old session to wait for.
    "zookeeper.session.timeout.ms": "18000",
}


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[AdminClient]:
    with admin_client(broker) as admin:
        yield admin


@pytest.fixture(scope="module")
def guarded(admin: AdminClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminClient]:
    """Of a broker that checks access rules."""
    require_api(admin, ApiKeys.CREATE_ACLS)
    work_dir: Path = tmp_path_factory.mktemp("guarded")
    broker = start_broker(work_dir, overrides=AUTHORIZER)
    try:
        with admin_client(broker) as guarded:
            yield guarded
    finally:
        broker.stop()


@pytest.fixture
def user() -> str:
    return f"user-{uuid.uuid4().hex}"


def test_rules_are_made_found_and_removed(guarded: AdminClient) -> None:
    reading = AclBinding(ResourcePattern(ResourceType.TOPIC, "orders"), READ)
    denying = AclBinding(ResourcePattern(ResourceType.GROUP, "g-", PatternType.PREFIXED), DENY)
    of_alice = AclBindingFilter(entry_filter=AccessControlEntryFilter(principal="User:alice"))
    of_groups = AclBindingFilter(
        ResourcePatternFilter(ResourceType.GROUP, "g-1", PatternType.MATCH)
    )

    guarded.create_acls([reading, denying])

    assert set(guarded.describe_acls(AclBindingFilter())) == {reading, denying}
    assert guarded.describe_acls(of_alice) == [reading]
    assert guarded.describe_acls(of_groups) == [denying]
    assert guarded.delete_acls([of_alice, of_groups]) == {
        of_alice: (reading,),
        of_groups: (denying,),
    }
    assert guarded.describe_acls(AclBindingFilter()) == []


def test_wrong_rule_is_refused(guarded: AdminClient) -> None:
    nameless = AclBinding(ResourcePattern(ResourceType.TOPIC, ""), READ)

    with pytest.raises(InvalidRequestError):
        guarded.create_acls([nameless])


def test_authorized_operations_are_told(guarded: AdminClient) -> None:
    guarded.create_topics([NewTopic("told", 1, 1)])

    described = guarded.describe_topics(["told"], include_authorized_operations=True)["told"]

    assert described.authorized_operations is not None
    assert {AclOperation.READ, AclOperation.DELETE} <= described.authorized_operations
    cluster = guarded.describe_cluster(include_authorized_operations=True)
    assert cluster.authorized_operations is not None
    assert AclOperation.CREATE in cluster.authorized_operations


def test_broker_without_an_authorizer_has_no_rules(admin: AdminClient) -> None:
    require_api(admin, ApiKeys.DESCRIBE_ACLS)

    with pytest.raises(SecurityDisabledError):
        admin.describe_acls(AclBindingFilter())


def test_quotas_are_set_found_and_removed(admin: AdminClient, user: str) -> None:
    require_api(admin, ApiKeys.ALTER_CLIENT_QUOTAS)
    alone = ClientQuotaEntity({"user": user})
    with_client = ClientQuotaEntity({"user": user, "client-id": None})
    of_user = ClientQuotaFilterComponent("user", ClientQuotaMatch.EXACT, user)

    admin.alter_client_quotas(
        [
            ClientQuotaAlteration(
                alone, {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.0}
            ),
            ClientQuotaAlteration(with_client, {"request_percentage": 50.0}),
        ]
    )
    admin.alter_client_quotas([ClientQuotaAlteration(alone, {"consumer_byte_rate": None})])

    both = admin.describe_client_quotas(ClientQuotaFilter((of_user,)))
    strict = admin.describe_client_quotas(ClientQuotaFilter((of_user,), strict=True))
    default_client = admin.describe_client_quotas(
        ClientQuotaFilter(
            (of_user, ClientQuotaFilterComponent("client-id", ClientQuotaMatch.DEFAULT))
        )
    )
    assert both == {alone: {"producer_byte_rate": 1000.0}, with_client: {"request_percentage": 50}}
    assert set(strict) == {alone}
    assert set(default_client) == {with_client}


def test_wrong_quota_is_refused(admin: AdminClient, user: str) -> None:
    require_api(admin, ApiKeys.ALTER_CLIENT_QUOTAS)

    with pytest.raises(InvalidRequestError):
        admin.alter_client_quotas(
            [ClientQuotaAlteration(ClientQuotaEntity({"user": user}), {"no_such_rate": 1.0})]
        )


def test_credentials_are_set_shown_and_deleted(admin: AdminClient, user: str) -> None:
    require_api(admin, ApiKeys.ALTER_USER_SCRAM_CREDENTIALS)
    sha_256, sha_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512

    admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion(user, sha_256, "secret", iterations=8192),
            UserScramCredentialUpsertion(user, sha_512, b"secret"),
        ]
    )
    both = admin.describe_user_scram_credentials([user])[user]
    admin.alter_user_scram_credentials([UserScramCredentialDeletion(user, sha_256)])

    assert set(both) == {ScramCredentialInfo(sha_256, 8192), ScramCredentialInfo(sha_512, 4096)}
    left = admin.describe_user_scram_credentials()
    assert left[user] == (ScramCredentialInfo(sha_512, 4096),)


def test_wrong_credentials_are_refused_by_user(admin: AdminClient, user: str) -> None:
    require_api(admin, ApiKeys.ALTER_USER_SCRAM_CREDENTIALS)
    sha_256 = ScramMechanism.SCRAM_SHA_256

    results = admin.alter_user_scram_credentials(
        [
            UserScramCredentialDeletion(user, sha_256),
            UserScramCredentialUpsertion(f"{user}-2", sha_256, "secret", iterations=1),
        ],
        raise_errors=False,
    )

    assert isinstance(results.errors[user], ResourceNotFoundError)
    assert isinstance(results.errors[f"{user}-2"], UnacceptableCredentialError)
    with pytest.raises(ResourceNotFoundError):
        admin.describe_user_scram_credentials([user])


def test_tokens_are_not_for_connections_without_authentication(admin: AdminClient) -> None:
    require_api(admin, ApiKeys.CREATE_DELEGATION_TOKEN)
    alice = KafkaPrincipal("User", "alice")

    with pytest.raises(UnsupportedByAuthenticationError):
        admin.create_delegation_token(renewers=[alice], max_lifetime_ms=60_000)
    with pytest.raises(UnsupportedByAuthenticationError):
        admin.renew_delegation_token(b"hmac")
    with pytest.raises(UnsupportedByAuthenticationError):
        admin.expire_delegation_token(b"hmac")
    with pytest.raises(UnsupportedByAuthenticationError):
        admin.describe_delegation_token([alice])
