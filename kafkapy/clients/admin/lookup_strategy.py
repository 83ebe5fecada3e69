"""How it is found out which broker is in charge of a key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from kafkapy.clients.admin.node_provider import (
    CONTROLLER_NODE,
    LEAST_LOADED_NODE,
    ConstantNodeIdProvider,
    NodeProvider,
)
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.errors import KafkaError, UnsupportedVersionError
from kafkapy.common.protocol.schema import Message

K = TypeVar("K")


@dataclass(slots=True)
class LookupResult(Generic[K]):
    """Ports: org.apache.kafka.clients.admin.internals.AdminApiLookupStrategy.LookupResult"""

    mapped: dict[K, int] = field(default_factory=dict)
    failed: dict[K, KafkaError] = field(default_factory=dict)
    retried: dict[K, KafkaError] = field(default_factory=dict)


class LookupStrategy(ABC, Generic[K]):
    """For the thread that polls.

    Ports: org.apache.kafka.clients.admin.internals.AdminApiLookupStrategy
    """

    call_name: str
    is_batched = True  # whether one request may be about several keys

    @abstractmethod
    def build_request(self, keys: Sequence[K]) -> VersionedRequest: ...

    @abstractmethod
    def handle_response(self, keys: Sequence[K], response: Message) -> LookupResult[K]: ...

    def handle_unsupported_version(self, error: UnsupportedVersionError) -> bool:
        """Whether there is another way to ask, to be tried next."""
        return False


@dataclass(frozen=True, slots=True)
class KnownNodeStrategy(Generic[K]):
    """Nothing to ask: the metadata or the key itself tells.

    Ports: org.apache.kafka.clients.admin.internals.StaticBrokerStrategy
    """

    provider_for: Callable[[K], NodeProvider]


NodeStrategy: TypeAlias = LookupStrategy[K] | KnownNodeStrategy[K]


def at_controller() -> KnownNodeStrategy[K]:
    return KnownNodeStrategy(lambda key: CONTROLLER_NODE)


def at_any_broker() -> KnownNodeStrategy[K]:
    return KnownNodeStrategy(lambda key: LEAST_LOADED_NODE)


def at_broker(broker_id_of: Callable[[K], int]) -> KnownNodeStrategy[K]:
    return KnownNodeStrategy(lambda key: ConstantNodeIdProvider(broker_id_of(key)))
