"""JoinGroup: members that are new, that come again, and that come back."""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.common.errors import Errors
from kafkapy.coordinator.group.group_coordinator_config import GroupCoordinatorConfig
from kafkapy.coordinator.group.group_metadata import GroupMetadata
from kafkapy.coordinator.group.group_metadata_manager import GroupMetadataManager
from kafkapy.coordinator.group.group_rebalances import GroupRebalances
from kafkapy.coordinator.group.group_results import (
    UNKNOWN_MEMBER_ID,
    JoinCallback,
    JoinGroupResult,
)
from kafkapy.coordinator.group.group_state import GroupState, IllegalGroupStateError
from kafkapy.coordinator.group.member_metadata import MemberMetadata, Protocols


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroup:
    """What a member asks for when it joins.

    With `require_known_member_id` a new member is only given an id, to join with again: a client
    that never sees the answer leaves no member behind.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    require_known_member_id: bool = False
    supports_skipping_assignment: bool = False
    reason: str | None = None


def validate_current_member(
    group: GroupMetadata, member_id: str, group_instance_id: str | None
) -> Errors | None:
    """Whether the member is in the group and is the one that now has its instance id."""
    if group_instance_id is not None:
        current_id = group.current_static_member_id(group_instance_id)
        if current_id is None:
            return Errors.UNKNOWN_MEMBER_ID
        return None if current_id == member_id else Errors.FENCED_INSTANCE_ID
    return None if group.has(member_id) else Errors.UNKNOWN_MEMBER_ID


class GroupJoins:
    """Takes members into groups. Thread-safe; needs the group's lock where it is given one.

    Ports: kafka.coordinator.group.GroupCoordinator.handleJoinGroup
    """

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        group_manager: GroupMetadataManager,
        rebalances: GroupRebalances,
    ) -> None:
        self._config = config
        self._group_manager = group_manager
        self._rebalances = rebalances

    def join(self, request: JoinGroup, callback: JoinCallback) -> None:
        group = (
            self._group_manager.get_or_create_group(request.group_id)
            if request.member_id == UNKNOWN_MEMBER_ID
            else self._group_manager.get_group(request.group_id)
        )
        if group is None:
            callback(JoinGroupResult(request.member_id, Errors.UNKNOWN_MEMBER_ID))
            return
        with group.lock:
            if not self._accepts_member(group, request.member_id):
                group.remove(request.member_id)
                callback(JoinGroupResult(UNKNOWN_MEMBER_ID, Errors.GROUP_MAX_SIZE_REACHED))
            elif (error := _refusal(group, request)) is not None:
                callback(JoinGroupResult(request.member_id, error))
            elif request.member_id == UNKNOWN_MEMBER_ID:
                self._join_new(group, request, callback)
            else:
                self._join_known(group, request, callback)
            self._rebalances.maybe_complete_join(group)

    def _accepts_member(self, group: GroupMetadata, member_id: str) -> bool:
        max_size = self._config.group_max_size
        match group.state:
            case GroupState.EMPTY | GroupState.DEAD:
                return True
            case GroupState.PREPARING_REBALANCE:
                # Who has joined this time counts; others may not come again.
                return group.num_awaiting_join < max_size or (
                    group.has(member_id) and group.get(member_id).is_awaiting_join
                )
            case _:
                return group.has(member_id) or group.size < max_size

    # New members

    def _join_new(self, group: GroupMetadata, request: JoinGroup, callback: JoinCallback) -> None:
        instance_id = request.group_instance_id
        member_id = group.generate_member_id(request.client_id, instance_id)
        if instance_id is not None:
            old_member_id = group.current_static_member_id(instance_id)
            if old_member_id is not None:
                self._replace_static_member(group, old_member_id, member_id, request, callback)
                return
        elif request.require_known_member_id:
            group.add_pending_member(member_id)
            self._rebalances.schedule_pending_member_expiration(
                group, member_id, request.session_timeout_ms
            )
            callback(JoinGroupResult(member_id, Errors.MEMBER_ID_REQUIRED))
            return
        self._add_member(group, member_id, request, callback)

    def _add_member(
        self, group: GroupMetadata, member_id: str, request: JoinGroup, callback: JoinCallback
    ) -> None:
        member = MemberMetadata(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            supported_protocols=request.protocols,
            is_new=True,
        )
        # Tells the first join of the group that it may be worth waiting for more.
        if group.is_in(GroupState.PREPARING_REBALANCE) and group.generation_id == 0:
            group.new_member_added = True
        group.add(member, callback)
        self._rebalances.schedule_new_member_expiration(group, member)
        self._rebalances.maybe_prepare_rebalance(group, _reason(f"new member {member_id}", request))

    # Members that come again

    def _join_known(self, group: GroupMetadata, request: JoinGroup, callback: JoinCallback) -> None:
        member_id = request.member_id
        if group.is_pending_member(member_id):
            if request.group_instance_id is not None:
                raise IllegalGroupStateError(
                    f"static member {request.group_instance_id} of group {group.group_id} joins "
                    f"with the id {member_id}, which is reserved for a dynamic one"
                )
            self._add_member(group, member_id, request, callback)
            return
        error = validate_current_member(group, member_id, request.group_instance_id)
        if error is not None:
            callback(JoinGroupResult(member_id, error))
            return
        member = group.get(member_id)
        match group.state:
            case GroupState.PREPARING_REBALANCE:
                rejoins = True
            case GroupState.COMPLETING_REBALANCE:
                # If nothing has changed, the answer to its last join was lost.
                rejoins = not member.matches(request.protocols)
            case GroupState.STABLE:
                # The leader rejoins when it wants to assign anew, as after a topic has grown.
                rejoins = group.is_leader(member_id) or not member.matches(request.protocols)
            case _:
                callback(JoinGroupResult(member_id, Errors.UNKNOWN_MEMBER_ID))
                return
        if not rejoins:
            callback(group.join_result(member_id))
            return
        self._update_member(group, member, request, callback)
        self._rebalances.maybe_prepare_rebalance(
            group, _reason(f"member {member_id} joins again", request)
        )

    def _update_member(
        self,
        group: GroupMetadata,
        member: MemberMetadata,
        request: JoinGroup,
        callback: JoinCallback,
    ) -> None:
        group.update_member(
            member,
            protocols=request.protocols,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            callback=callback,
        )

    # Static members that come back

    def _replace_static_member(
        self,
        group: GroupMetadata,
        old_member_id: str,
        new_member_id: str,
        request: JoinGroup,
        callback: JoinCallback,
    ) -> None:
        old_leader = group.leader_or_empty
        instance_id = request.group_instance_id
        assert instance_id is not None
        member = group.replace_static_member(instance_id, old_member_id, new_member_id)
        self._rebalances.schedule_next_heartbeat(group, member)
        old_protocols = member.supported_protocols
        old_timeouts = member.rebalance_timeout_ms, member.session_timeout_ms
        self._update_member(group, member, request, callback)

        def on_stored(error: Errors) -> None:
            with group.lock:
                if error is not Errors.NONE:
                    # As if it had never come: the log has the old id.
                    group.update_member(
                        member,
                        protocols=old_protocols,
                        rebalance_timeout_ms=old_timeouts[0],
                        session_timeout_ms=old_timeouts[1],
                        callback=None,
                    )
                    group.replace_static_member(instance_id, new_member_id, old_member_id)
                    self._rebalances.schedule_next_heartbeat(group, member)
                    callback(
                        JoinGroupResult(
                            UNKNOWN_MEMBER_ID,
                            error,
                            generation_id=group.generation_id,
                            protocol_type=group.protocol_type,
                            protocol_name=group.protocol_name,
                            leader_id=old_leader,
                        )
                    )
                elif request.supports_skipping_assignment:
                    # A leader is told that it leads, and that the assignment stands.
                    group.maybe_invoke_join_callback(
                        member,
                        group.join_result(
                            new_member_id, skip_assignment=group.is_leader(new_member_id)
                        ),
                    )
                else:
                    # Under its old id the leader does not know itself, so it assigns nothing.
                    group.maybe_invoke_join_callback(
                        member,
                        JoinGroupResult(
                            new_member_id,
                            Errors.NONE,
                            generation_id=group.generation_id,
                            protocol_type=group.protocol_type,
                            protocol_name=group.protocol_name,
                            leader_id=old_leader,
                        ),
                    )

        match group.state:
            case GroupState.STABLE:
                if group.protocol_name == group.select_protocol():
                    self._group_manager.store_group(
                        group, {m.member_id: m.assignment for m in group.members}, on_stored
                    )
                else:
                    self._rebalances.maybe_prepare_rebalance(
                        group, f"static member {instance_id} changes the protocol"
                    )
            case GroupState.COMPLETING_REBALANCE:
                # The leader may be assigning to the old id just now.
                self._rebalances.prepare_rebalance(
                    group, _reason(f"static member {instance_id} came back", request)
                )
            case GroupState.PREPARING_REBALANCE:
                pass  # it has joined with this
            case _:
                raise IllegalGroupStateError(
                    f"group {group.group_id} has a static member but is {group.state.value}"
                )


def _refusal(group: GroupMetadata, request: JoinGroup) -> Errors | None:
    if group.is_in(GroupState.DEAD):
        # It is being removed or goes to another broker: the client finds out where.
        return Errors.COORDINATOR_NOT_AVAILABLE
    if not group.supports_protocols(request.protocol_type, [name for name, _ in request.protocols]):
        return Errors.INCONSISTENT_GROUP_PROTOCOL
    return None


def _reason(what: str, request: JoinGroup) -> str:
    return f"{what} (it says: {request.reason})" if request.reason else what
