"""How the members of a group share out partitions: the interface, and what goes through it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from kafkapy.common.types import TopicPartition

DEFAULT_GENERATION = -1


class RebalanceProtocol(IntEnum):
    """What a member does with its partitions while the group rebalances.

    EAGER gives all of them up before joining; COOPERATIVE keeps them and gives up afterwards only
    those that went to others.

    Ports: org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.RebalanceProtocol
    """

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one member tells the leader of its group.

    Ports: org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = DEFAULT_GENERATION
    rack_id: str | None = None
    group_instance_id: str | None = None  # known to the leader from JoinGroup, not on this wire


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the leader of a group tells one member.

    Ports: org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment
    """

    partitions: list[TopicPartition] = field(default_factory=list)
    user_data: bytes | None = None


class ConsumerPartitionAssignor(ABC):
    """A way to share out partitions. Used by the one thread that polls its consumer.

    Every member names the assignors it supports; the group uses one that all of them have, and
    its leader runs it.

    Ports: org.apache.kafka.clients.consumer.ConsumerPartitionAssignor
    """

    name: str

    @property
    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        return (RebalanceProtocol.EAGER,)

    @abstractmethod
    def assign(
        self, partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        """Every member's assignment; only topics that exist are in `partitions_per_topic`."""

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """What to add to this member's own subscription."""
        return None

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:  # noqa: B027
        """This member has received its assignment."""
