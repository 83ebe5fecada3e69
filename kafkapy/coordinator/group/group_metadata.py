"""One group: its members, its generation and its state."""

from __future__ import annotations

import logging
import struct
import threading
import uuid
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_offsets import GroupOffsets
from kafkapy.coordinator.group.group_results import (
    NO_LEADER,
    JoinCallback,
    JoinedMember,
    JoinGroupResult,
    SyncGroupResult,
)
from kafkapy.coordinator.group.group_state import (
    VALID_PREVIOUS_STATES,
    GroupState,
    IllegalGroupStateError,
)
from kafkapy.coordinator.group.member_metadata import MemberMetadata, MemberSummary, Protocols
from kafkapy.coordinator.group.offset_and_metadata import OffsetAndMetadata
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

CONSUMER_PROTOCOL_TYPE = "consumer"
_VERSION = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class GroupOverview:
    """Ports: kafka.coordinator.group.GroupOverview"""

    group_id: str
    protocol_type: str
    state: str
    group_type: str = "classic"


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """Ports: kafka.coordinator.group.GroupSummary"""

    state: str
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[MemberSummary, ...] = ()


class GroupMetadata:
    """A group's members and offsets. Everything is guarded by `lock`, which may be re-entered.

    Members keep the order in which they joined. `pending_members` have been given an id and are
    expected to join with it; `pending_sync_members` have been given a generation and are expected
    to ask for their assignment.

    Ports: kafka.coordinator.group.GroupMetadata
    """

    def __init__(self, group_id: str, time: Time, state: GroupState = GroupState.EMPTY) -> None:
        self.group_id = group_id  # constant after construction
        self._time = time
        self.lock = threading.RLock()
        # guarded by self.lock
        self.state = state
        self.current_state_timestamp: int | None = time.milliseconds()
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: str | None = None
        self.subscribed_topics: frozenset[str] | None = None
        self.new_member_added = False
        self.offsets = GroupOffsets()
        self._members: dict[str, MemberMetadata] = {}
        self._static_members: dict[str, str] = {}
        self._pending_members: set[str] = set()
        self._pending_sync_members: set[str] = set()
        self._supported_protocols: Counter[str] = Counter()
        self._num_awaiting_join = 0

    def __repr__(self) -> str:
        return (
            f"GroupMetadata({self.group_id!r}, {self.state.value}, "
            f"generation={self.generation_id}, members={len(self._members)})"
        )

    # State

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    def transition_to(self, target: GroupState) -> None:
        """Raises IllegalGroupStateError, and changes nothing, for a step that is not allowed."""
        if self.state not in VALID_PREVIOUS_STATES[target]:
            raise IllegalGroupStateError(
                f"group {self.group_id} is {self.state.value} and cannot become {target.value}"
            )
        self.state = target
        self.current_state_timestamp = self._time.milliseconds()

    @property
    def can_rebalance(self) -> bool:
        return self.state in VALID_PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    def init_next_generation(self) -> None:
        """The next generation: with the members that joined, or empty."""
        protocol_name = self.select_protocol() if self._members else None
        self.transition_to(GroupState.COMPLETING_REBALANCE if self._members else GroupState.EMPTY)
        self.generation_id += 1
        self.protocol_name = protocol_name
        self.subscribed_topics = self._compute_subscribed_topics()
        self.offsets.forget_kinds_of_commits()
        self._pending_sync_members.clear()

    def restore(
        self,
        *,
        generation_id: int,
        protocol_type: str | None,
        protocol_name: str | None,
        leader_id: str | None,
        current_state_timestamp: int | None,
        members: Iterable[MemberMetadata],
    ) -> None:
        """What the group was when it was stored."""
        self.generation_id = generation_id
        self.protocol_type = protocol_type or None
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.current_state_timestamp = current_state_timestamp
        for member in members:
            self.add(member)
        self.subscribed_topics = self._compute_subscribed_topics()

    # Members

    @property
    def size(self) -> int:
        return len(self._members)

    @property
    def member_ids(self) -> list[str]:
        return list(self._members)

    @property
    def members(self) -> list[MemberMetadata]:
        return list(self._members.values())

    def has(self, member_id: str) -> bool:
        return member_id in self._members

    def get(self, member_id: str) -> MemberMetadata:
        return self._members[member_id]

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    @property
    def leader_or_empty(self) -> str:
        return self.leader_id if self.leader_id is not None else NO_LEADER

    def current_static_member_id(self, group_instance_id: str) -> str | None:
        return self._static_members.get(group_instance_id)

    def generate_member_id(self, client_id: str, group_instance_id: str | None) -> str:
        prefix = group_instance_id if group_instance_id is not None else client_id
        return f"{prefix}-{uuid.uuid4()}"

    def add(self, member: MemberMetadata, callback: JoinCallback | None = None) -> None:
        instance_id = member.group_instance_id
        if instance_id is not None and instance_id in self._static_members:
            raise IllegalGroupStateError(
                f"group {self.group_id} has a member with instance id {instance_id} already"
            )
        if not self._members:
            self.protocol_type = member.protocol_type
        if self.protocol_type != member.protocol_type or not (
            not self._members or self._has_common_protocol(member.protocol_names)
        ):
            raise IllegalGroupStateError(
                f"the protocols of member {member.member_id} do not fit group {self.group_id}"
            )
        if instance_id is not None:
            self._static_members[instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._members[member.member_id] = member
        self._supported_protocols.update(set(member.protocol_names))
        member.awaiting_join_callback = callback
        if callback is not None:
            self._num_awaiting_join += 1
        self._pending_members.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        member = self._members.pop(member_id, None)
        if member is not None:
            self._supported_protocols.subtract(set(member.protocol_names))
            if member.is_awaiting_join:
                self._num_awaiting_join -= 1
            if member.group_instance_id is not None:
                self._static_members.pop(member.group_instance_id, None)
        if self.is_leader(member_id):
            self.leader_id = next(iter(self._members), None)
        self._pending_members.discard(member_id)
        self._pending_sync_members.discard(member_id)

    def replace_static_member(
        self, group_instance_id: str, old_member_id: str, new_member_id: str
    ) -> MemberMetadata:
        """The instance came back: it goes on under a new id and whoever used the old is fenced."""
        member = self._members.pop(old_member_id)
        self.maybe_invoke_join_callback(
            member, JoinGroupResult(old_member_id, Errors.FENCED_INSTANCE_ID)
        )
        self.maybe_invoke_sync_callback(member, SyncGroupResult(Errors.FENCED_INSTANCE_ID))
        member.member_id = new_member_id
        self._members[new_member_id] = member
        if self.is_leader(old_member_id):
            self.leader_id = new_member_id
        self._static_members[group_instance_id] = new_member_id
        if old_member_id in self._pending_sync_members:
            self._pending_sync_members.remove(old_member_id)
            self._pending_sync_members.add(new_member_id)
        return member

    def update_member(
        self,
        member: MemberMetadata,
        *,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        callback: JoinCallback | None,
    ) -> None:
        self._supported_protocols.subtract(set(member.protocol_names))
        member.supported_protocols = protocols
        self._supported_protocols.update(set(member.protocol_names))
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._num_awaiting_join += (callback is not None) - member.is_awaiting_join
        member.awaiting_join_callback = callback

    def maybe_elect_new_joined_leader(self) -> bool:
        """Whether the leader has joined, be it the old one or one of those who did."""
        if self.leader_id is None:
            return False
        if self._members[self.leader_id].is_awaiting_join:
            return True
        joined = next((m for m in self._members.values() if m.is_awaiting_join), None)
        if joined is None:
            return False
        logger.info(
            "Group %s: leader %s did not rejoin; %s leads now",
            self.group_id,
            self.leader_id,
            joined.member_id,
        )
        self.leader_id = joined.member_id
        return True

    @property
    def num_awaiting_join(self) -> int:
        return self._num_awaiting_join

    @property
    def has_all_members_joined(self) -> bool:
        return len(self._members) == self._num_awaiting_join and not self._pending_members

    def not_yet_rejoined_members(self) -> list[MemberMetadata]:
        return [member for member in self._members.values() if not member.is_awaiting_join]

    @property
    def rebalance_timeout_ms(self) -> int:
        """That of the most patient member."""
        return max((m.rebalance_timeout_ms for m in self._members.values()), default=0)

    # Members that are expected to do something

    def is_pending_member(self, member_id: str) -> bool:
        return member_id in self._pending_members

    def add_pending_member(self, member_id: str) -> None:
        if self.has(member_id):
            raise IllegalGroupStateError(
                f"{member_id} is a member of group {self.group_id} already"
            )
        self._pending_members.add(member_id)

    @property
    def pending_sync_members(self) -> frozenset[str]:
        return frozenset(self._pending_sync_members)

    def add_pending_sync_member(self, member_id: str) -> None:
        if not self.has(member_id):
            raise IllegalGroupStateError(f"{member_id} is no member of group {self.group_id}")
        self._pending_sync_members.add(member_id)

    def remove_pending_sync_member(self, member_id: str) -> None:
        self._pending_sync_members.discard(member_id)

    def clear_pending_sync_members(self) -> None:
        self._pending_sync_members.clear()

    @property
    def has_received_sync_from_all_members(self) -> bool:
        return not self._pending_sync_members

    # Answers

    def maybe_invoke_join_callback(self, member: MemberMetadata, result: JoinGroupResult) -> None:
        callback = member.awaiting_join_callback
        if callback is not None:
            member.awaiting_join_callback = None
            self._num_awaiting_join -= 1
            callback(result)

    def maybe_invoke_sync_callback(self, member: MemberMetadata, result: SyncGroupResult) -> bool:
        callback = member.awaiting_sync_callback
        if callback is None:
            return False
        member.awaiting_sync_callback = None
        callback(result)
        return True

    def join_result(self, member_id: str, *, skip_assignment: bool = False) -> JoinGroupResult:
        """The current generation; the leader sees its members."""
        return JoinGroupResult(
            member_id,
            Errors.NONE,
            members=self.current_member_metadata() if self.is_leader(member_id) else (),
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader_id=self.leader_or_empty,
            skip_assignment=skip_assignment,
        )

    def current_member_metadata(self) -> tuple[JoinedMember, ...]:
        if self.protocol_name is None or self.is_in(
            GroupState.DEAD, GroupState.PREPARING_REBALANCE
        ):
            raise IllegalGroupStateError(
                f"group {self.group_id} has no generation: it is {self.state.value}"
            )
        return tuple(
            JoinedMember(m.member_id, m.group_instance_id, m.metadata(self.protocol_name))
            for m in self._members.values()
        )

    def summary(self) -> GroupSummary:
        # Metadata and assignments are those of a generation, which only a stable group has whole.
        protocol = self.protocol_name if self.is_in(GroupState.STABLE) else None
        return GroupSummary(
            self.state.value,
            self.protocol_type or "",
            protocol or "",
            tuple(member.summary(protocol) for member in self._members.values()),
        )

    def overview(self) -> GroupOverview:
        return GroupOverview(self.group_id, self.protocol_type or "", self.state.value)

    # Protocols

    def supports_protocols(self, protocol_type: str, protocols: Collection[str]) -> bool:
        """Whether a member with these protocols may join."""
        if self.is_in(GroupState.EMPTY):
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and self._has_common_protocol(protocols)

    def select_protocol(self) -> str:
        """What most members like best among what all of them support."""
        candidates = {
            name for name, count in self._supported_protocols.items() if count == len(self._members)
        }
        votes = Counter(member.vote(candidates) for member in self._members.values())
        if not votes:
            raise IllegalGroupStateError(f"group {self.group_id} has no members to vote")
        return votes.most_common(1)[0][0]

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """True as well when the subscriptions cannot be read."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def _has_common_protocol(self, protocols: Collection[str]) -> bool:
        return any(self._supported_protocols[name] == len(self._members) for name in protocols)

    def _compute_subscribed_topics(self) -> frozenset[str] | None:
        if not self.is_consumer_group:
            return None
        if not self._members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        try:
            for member in self._members.values():
                metadata = member.metadata(self.protocol_name)
                # Version 0 is how every later version begins.
                subscription, _ = ConsumerProtocolSubscription.decode_from(
                    metadata, _VERSION.size, 0
                )
                topics.update(subscription.topics)
        except ProtocolError as e:
            logger.warning(
                "Group %s: the subscriptions of protocol %s cannot be read: %s",
                self.group_id,
                self.protocol_name,
                e,
            )
            return None
        return frozenset(topics)

    # Offsets

    def remove_expired_offsets(
        self, now_ms: int, retention_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """An empty group's offsets age since it became empty, others since they were committed."""
        if self.protocol_type is not None and self.is_in(GroupState.EMPTY):
            since_ms = self.current_state_timestamp
            return self.offsets.remove_expired(
                now_ms,
                retention_ms,
                base_timestamp=lambda offset: (
                    since_ms if since_ms is not None else offset.commit_timestamp
                ),
            )
        if self.protocol_type is None:
            # Nobody ever joined: consumers with partitions of their own only store offsets here.
            return self.offsets.remove_expired(
                now_ms, retention_ms, base_timestamp=lambda offset: offset.commit_timestamp
            )
        if (
            self.is_consumer_group
            and self.subscribed_topics is not None
            and self.is_in(GroupState.STABLE)
        ):
            return self.offsets.remove_expired(
                now_ms,
                retention_ms,
                base_timestamp=lambda offset: offset.commit_timestamp,
                subscribed_topics=self.subscribed_topics,
            )
        return {}
