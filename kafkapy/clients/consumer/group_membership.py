"""Who a member is in its group at the moment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from kafkapy.clients.consumer.consumer_group_metadata import (
    UNKNOWN_GENERATION_ID,
    UNKNOWN_MEMBER_ID,
)


class MemberState(Enum):
    """Ports: org.apache.kafka.clients.consumer.internals.AbstractCoordinator.MemberState"""

    UNJOINED = auto()
    PREPARING_REBALANCE = auto()  # has sent its JoinGroup
    COMPLETING_REBALANCE = auto()  # has the answer, and sent its SyncGroup
    STABLE = auto()

    @property
    def has_not_joined_group(self) -> bool:
        return self in (MemberState.UNJOINED, MemberState.PREPARING_REBALANCE)


@dataclass(frozen=True, slots=True)
class Generation:
    """Ports: org.apache.kafka.clients.consumer.internals.AbstractCoordinator.Generation"""

    generation_id: int
    member_id: str
    protocol_name: str | None

    @property
    def has_member_id(self) -> bool:
        return bool(self.member_id)

    @property
    def is_reset(self) -> bool:
        """The membership is gone, or was never there."""
        return self.generation_id == UNKNOWN_GENERATION_ID


NO_GENERATION = Generation(UNKNOWN_GENERATION_ID, UNKNOWN_MEMBER_ID, None)
