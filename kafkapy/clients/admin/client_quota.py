"""Quotas of users, clients and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"


class ClientQuotaEntity:
    """Who a quota is for, as {"user": "alice", "client-id": None}; None is the default of a type.

    Immutable, and a key of dicts.

    Ports: org.apache.kafka.common.quota.ClientQuotaEntity
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, str | None]) -> None:
        self._entries = frozenset(entries.items())

    @property
    def entries(self) -> dict[str, str | None]:
        return dict(self._entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientQuotaEntity) and self._entries == other._entries

    def __hash__(self) -> int:
        return hash(self._entries)

    def __repr__(self) -> str:
        return f"ClientQuotaEntity({self.entries})"


class ClientQuotaMatch(IntEnum):
    """Which names of a type are meant; the numbers are those of the protocol."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class ClientQuotaFilterComponent:
    """One type of entity and which of its names: by default all that have quotas.

    Ports: org.apache.kafka.common.quota.ClientQuotaFilterComponent
    """

    entity_type: str
    match_type: ClientQuotaMatch = ClientQuotaMatch.ANY
    name: str | None = None  # of an exact match

    def __post_init__(self) -> None:
        if (self.name is not None) != (self.match_type is ClientQuotaMatch.EXACT):
            raise ValueError(f"{self.entity_type}: a name goes with an exact match, and only there")


@dataclass(frozen=True, slots=True)
class ClientQuotaFilter:
    """Which quotas are meant; strict: of entities that have these types and no others.

    Ports: org.apache.kafka.common.quota.ClientQuotaFilter
    """

    components: tuple[ClientQuotaFilterComponent, ...] = ()
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ClientQuotaAlteration:
    """New values of an entity's quotas; None removes one.

    Ports: org.apache.kafka.common.quota.ClientQuotaAlteration
    """

    entity: ClientQuotaEntity
    ops: Mapping[str, float | None]
