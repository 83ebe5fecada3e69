"""Quotas and SCRAM credentials, as kafka-configs shows and changes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from kafkapy.clients.admin import (
    AdminClient,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ClientQuotaMatch,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafkapy.clients.admin.client_quota import CLIENT_ID, IP, USER
from kafkapy.clients.admin.user_scram_credential import DEFAULT_ITERATIONS
from kafkapy.common.command_line import fail
from kafkapy.tools.config_entities import ConfigEntity, EntityType
from kafkapy.tools.java_text import double

_QUOTA_ENTITIES = {EntityType.USER: USER, EntityType.CLIENT: CLIENT_ID, EntityType.IP: IP}
_TITLES = {USER: "user-principal", CLIENT_ID: "client-id", IP: "ip"}
_CLIENT_QUOTAS = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
_IP_QUOTAS = frozenset({"connection_creation_rate"})
_MECHANISMS = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}
_CREDENTIAL = re.compile(r"(?:iterations=(?P<iterations>[0-9]+),)?password=(?P<password>.+)")


class ClientConfigs:
    """Works through an admin client. For one thread.

    Ports: kafka.admin.ConfigCommand
    """

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin  # constant after construction

    def describe(self, entities: Sequence[ConfigEntity]) -> None:
        quotas = self._quotas(entities)
        lines = []
        for entity, values in quotas.items():
            shown = ", ".join(f"{name}={double(values[name])}" for name in sorted(values))
            lines.append(f"Quota configs for {_title(entity)} are {shown}")
        for line in sorted(lines):
            print(line)
        first = entities[0]
        if len(entities) == 1 and first.entity_type is EntityType.USER and not first.is_default:
            self._describe_credentials(first.name)

    def _describe_credentials(self, user: str | None) -> None:
        users = None if user is None else [user]
        credentials = self._admin.describe_user_scram_credentials(users, raise_errors=False)
        for name, infos in sorted(credentials.successes.items()):
            shown = ", ".join(
                f"{info.mechanism.name.replace('_', '-')}=iterations={info.iterations}"
                for info in infos
            )
            print(f"SCRAM credential configs for user-principal '{name}' are {shown}")

    def alter(
        self, entities: Sequence[ConfigEntity], added: Mapping[str, str], deleted: Collection[str]
    ) -> None:
        kinds = {entity.entity_type for entity in entities}
        known = _IP_QUOTAS if EntityType.IP in kinds else _CLIENT_QUOTAS
        names = [*added, *deleted]
        credentials = [name for name in names if name in _MECHANISMS]
        if credentials and kinds == {EntityType.USER}:
            if len(credentials) < len(names):
                fail("Quotas and SCRAM credentials cannot be changed at once")
            self._alter_credentials(entities[0], added, deleted)
            return
        unknown = [name for name in names if name not in known]
        if unknown:
            fail(f"There are no quotas {', '.join(unknown)}; there are {', '.join(sorted(known))}")
        self._alter_quotas(entities, added, deleted)

    def _alter_quotas(
        self, entities: Sequence[ConfigEntity], added: Mapping[str, str], deleted: Collection[str]
    ) -> None:
        values: dict[str, float | None] = {}
        for name, text in added.items():
            try:
                values[name] = float(text)
            except ValueError:
                fail(f"{name}={text}: expected a number")
        entity = ClientQuotaEntity({_QUOTA_ENTITIES[e.entity_type]: e.name for e in entities})
        existing = self._quotas(entities).get(entity, {})
        unset = [name for name in deleted if name not in existing]
        if unset:
            fail(f"Not set, so they cannot be deleted: {', '.join(unset)}")
        values.update(dict.fromkeys(deleted))
        self._admin.alter_client_quotas([ClientQuotaAlteration(entity, values)])

    def _alter_credentials(
        self, entity: ConfigEntity, added: Mapping[str, str], deleted: Collection[str]
    ) -> None:
        if entity.name is None:
            fail("SCRAM credentials have no defaults: name a user")
        upsertions = []
        for name, text in added.items():
            match = _CREDENTIAL.fullmatch(text)
            if match is None:
                fail(f"{name}: expected [password=secret] or [iterations=8192,password=secret]")
            upsertions.append(
                UserScramCredentialUpsertion(
                    entity.name,
                    _MECHANISMS[name],
                    match["password"],
                    int(match["iterations"] or DEFAULT_ITERATIONS),
                )
            )
        deletions = [
            UserScramCredentialDeletion(entity.name, _MECHANISMS[name]) for name in deleted
        ]
        self._admin.alter_user_scram_credentials([*deletions, *upsertions])

    def _quotas(
        self, entities: Sequence[ConfigEntity]
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        components = tuple(_component(entity) for entity in entities)
        return self._admin.describe_client_quotas(ClientQuotaFilter(components, strict=True))


def _component(entity: ConfigEntity) -> ClientQuotaFilterComponent:
    kind = _QUOTA_ENTITIES[entity.entity_type]
    if entity.is_default:
        return ClientQuotaFilterComponent(kind, ClientQuotaMatch.DEFAULT)
    if entity.name is None:
        return ClientQuotaFilterComponent(kind, ClientQuotaMatch.ANY)
    return ClientQuotaFilterComponent(kind, ClientQuotaMatch.EXACT, entity.name)


def _title(entity: ClientQuotaEntity) -> str:
    entries = entity.entries
    return ", ".join(
        f"the default {title}" if entries[kind] is None else f"{title} '{entries[kind]}'"
        for kind, title in _TITLES.items()
        if kind in entries
    )
