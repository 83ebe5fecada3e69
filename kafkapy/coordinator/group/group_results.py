"""What the coordinator answers to members of a group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.common.errors import Errors

UNKNOWN_MEMBER_ID = ""
NO_GENERATION = -1
NO_LEADER = ""


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as its group's leader sees it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupResult:
    """Only the leader is told about the members.

    Ports: kafka.coordinator.group.JoinGroupResult
    """

    member_id: str
    error: Errors
    members: tuple[JoinedMember, ...] = ()
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = NO_LEADER
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SyncGroupResult:
    """Ports: kafka.coordinator.group.SyncGroupResult"""

    error: Errors
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """Who is to leave: a member id, or an instance id alone when an administrator asks."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroupResult:
    """Ports: kafka.coordinator.group.LeaveGroupResult"""

    error: Errors
    members: tuple[tuple[MemberIdentity, Errors], ...] = ()


JoinCallback = Callable[[JoinGroupResult], None]
SyncCallback = Callable[[SyncGroupResult], None]
