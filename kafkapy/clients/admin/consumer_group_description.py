"""Consumer groups as their coordinators describe them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from kafkapy.common.security.acl import AclOperation
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node

E = TypeVar("E", bound=Enum)


class ConsumerGroupState(Enum):
    """Ports: org.apache.kafka.common.ConsumerGroupState"""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"

    @classmethod
    def _missing_(cls, value: object) -> ConsumerGroupState:
        return _same_but_for_case(cls, value) or cls.UNKNOWN


class GroupType(Enum):
    """Ports: org.apache.kafka.common.GroupType"""

    UNKNOWN = "Unknown"
    CONSUMER = "Consumer"
    CLASSIC = "Classic"
    SHARE = "Share"

    @classmethod
    def _missing_(cls, value: object) -> GroupType:
        return _same_but_for_case(cls, value) or cls.UNKNOWN


def _same_but_for_case(cls: type[E], value: object) -> E | None:
    wanted = str(value).lower()
    return next((member for member in cls if member.value.lower() == wanted), None)


@dataclass(frozen=True, slots=True)
class ConsumerGroupListing:
    """A group in a list. `is_simple_consumer_group`: it only stores offsets, without members.

    Ports: org.apache.kafka.clients.admin.ConsumerGroupListing
    """

    group_id: str
    is_simple_consumer_group: bool
    state: ConsumerGroupState | None = None  # where the broker tells
    group_type: GroupType | None = None


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """`target_assignment` is what a member of the newer protocol is on its way to.

    Ports: org.apache.kafka.clients.admin.MemberDescription
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]
    target_assignment: frozenset[TopicPartition] | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescription:
    """Ports: org.apache.kafka.clients.admin.ConsumerGroupDescription"""

    group_id: str
    is_simple_consumer_group: bool
    members: tuple[MemberDescription, ...]
    partition_assignor: str
    state: ConsumerGroupState
    coordinator: Node
    group_type: GroupType = GroupType.CLASSIC
    authorized_operations: frozenset[AclOperation] | None = None


@dataclass(frozen=True, slots=True)
class MemberToRemove:
    """A member, by the instance id that it was configured with or by the id it was given.

    Ports: org.apache.kafka.clients.admin.MemberToRemove
    """

    group_instance_id: str | None = None
    member_id: str = ""

    def __post_init__(self) -> None:
        if self.group_instance_id is None and not self.member_id:
            raise ValueError("a member to remove needs a group_instance_id or a member_id")

    def __str__(self) -> str:
        return f"member {self.group_instance_id or self.member_id}"
