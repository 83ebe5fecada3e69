"""How a group gets from one generation to the next, and how it loses members."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkapy.common.errors import Errors
from kafkapy.coordinator.group.delayed_heartbeat import DelayedHeartbeat, MemberKey
from kafkapy.coordinator.group.delayed_rebalance import (
    DelayedJoin,
    DelayedRebalance,
    DelayedSync,
    GroupJoinKey,
    GroupSyncKey,
    InitialDelayedJoin,
)
from kafkapy.coordinator.group.group_coordinator_config import GroupCoordinatorConfig
from kafkapy.coordinator.group.group_metadata import GroupMetadata
from kafkapy.coordinator.group.group_metadata_manager import GroupMetadataManager
from kafkapy.coordinator.group.group_results import (
    UNKNOWN_MEMBER_ID,
    JoinGroupResult,
    SyncGroupResult,
)
from kafkapy.coordinator.group.group_state import GroupState, IllegalGroupStateError
from kafkapy.coordinator.group.member_metadata import MemberMetadata
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from kafkapy.replication.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

# How long a join of a new member may wait: it has no session yet that could time out.
NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000


class GroupRebalances:
    """Rebalances groups and watches over their members. Thread-safe.

    Methods that are given a group need its lock, except those that a time-out calls.

    Ports: kafka.coordinator.group.GroupCoordinator (rebalances and heartbeats)
    """

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        group_manager: GroupMetadataManager,
        *,
        heartbeat_purgatory: DelayedOperationPurgatory[DelayedHeartbeat],
        rebalance_purgatory: DelayedOperationPurgatory[DelayedRebalance],
        replica_manager: ReplicaManager,
    ) -> None:
        self._config = config
        self._group_manager = group_manager
        self._heartbeats = heartbeat_purgatory
        self._rebalances = rebalance_purgatory
        self._replica_manager = replica_manager

    def shutdown(self) -> None:
        self._heartbeats.shutdown()
        self._rebalances.shutdown()

    # Preparing: waiting for the members to join

    def maybe_prepare_rebalance(self, group: GroupMetadata, reason: str) -> None:
        if group.can_rebalance:
            self.prepare_rebalance(group, reason)

    def prepare_rebalance(self, group: GroupMetadata, reason: str) -> None:
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            # Who waits for an assignment of this generation will not get one.
            self._set_assignments(group, {}, Errors.REBALANCE_IN_PROGRESS)
        self._remove_sync_expiration(group)
        delay_ms = self._config.group_initial_rebalance_delay_ms
        delayed_join = (
            InitialDelayedJoin(
                self,
                group,
                self._watch_join,
                configured_delay_ms=delay_ms,
                delay_ms=delay_ms,
                remaining_ms=max(group.rebalance_timeout_ms - delay_ms, 0),
            )
            if group.is_in(GroupState.EMPTY)
            else DelayedJoin(self, group, group.rebalance_timeout_ms)
        )
        group.transition_to(GroupState.PREPARING_REBALANCE)
        logger.info(
            "Preparing to rebalance group %s, generation %d: %s",
            group.group_id,
            group.generation_id,
            reason,
        )
        self._watch_join(delayed_join, group)

    def _watch_join(self, delayed_join: DelayedJoin, group: GroupMetadata) -> None:
        self._rebalances.try_complete_else_watch(delayed_join, (GroupJoinKey(group.group_id),))

    def maybe_complete_join(self, group: GroupMetadata) -> None:
        if group.is_in(GroupState.PREPARING_REBALANCE):
            self._rebalances.check_and_complete(GroupJoinKey(group.group_id))

    def on_complete_join(self, group: GroupMetadata) -> None:
        with group.lock:
            for member in group.not_yet_rejoined_members():
                # A static member may be restarting: it keeps its place until its session ends.
                if not member.is_static:
                    logger.info(
                        "Group %s: member %s did not rejoin", group.group_id, member.member_id
                    )
                    group.remove(member.member_id)
                    self.complete_heartbeat(group, member.member_id)
            if group.is_in(GroupState.DEAD):
                logger.info("Group %s is dead: its rebalance ends", group.group_id)
            elif group.size and not group.maybe_elect_new_joined_leader():
                # Only silent static members are left; they join or their sessions end.
                logger.info("Group %s: nobody has rejoined, so it waits on", group.group_id)
                self._watch_join(DelayedJoin(self, group, group.rebalance_timeout_ms), group)
            else:
                group.init_next_generation()
                if group.is_in(GroupState.EMPTY):
                    logger.info(
                        "Group %s, generation %d is empty", group.group_id, group.generation_id
                    )
                    # If that fails, loading finds members, whose sessions then end.
                    self._group_manager.store_group(group, {}, lambda _: None)
                else:
                    self._start_generation(group)

    def _start_generation(self, group: GroupMetadata) -> None:
        logger.info(
            "Group %s has generation %d with %d members",
            group.group_id,
            group.generation_id,
            group.size,
        )
        for member in group.members:
            group.maybe_invoke_join_callback(member, group.join_result(member.member_id))
            self.schedule_next_heartbeat(group, member)
            member.is_new = False
            group.add_pending_sync_member(member.member_id)
        self._rebalances.try_complete_else_watch(
            DelayedSync(self, group, group.rebalance_timeout_ms), (GroupSyncKey(group.group_id),)
        )

    def on_expiration_done(self) -> None:
        # No request handler follows that would do it.
        self._replica_manager.try_complete_actions()

    # Completing: waiting for the leader's assignment

    def store_assignments(self, group: GroupMetadata, assignments: Mapping[str, bytes]) -> None:
        """The leader has spoken: store that, then tell the members."""
        generation_id = group.generation_id
        missing = [member_id for member_id in group.member_ids if member_id not in assignments]
        if missing:
            logger.warning(
                "Group %s: the leader has assigned nothing to %s",
                group.group_id,
                ", ".join(missing),
            )
        complete = {member_id: assignments.get(member_id, b"") for member_id in group.member_ids}

        def on_stored(error: Errors) -> None:
            with group.lock:
                # Another member may have joined while the record was on its way.
                if (
                    not group.is_in(GroupState.COMPLETING_REBALANCE)
                    or group.generation_id != generation_id
                ):
                    return
                if error is Errors.NONE:
                    self._set_assignments(group, complete, Errors.NONE)
                    group.transition_to(GroupState.STABLE)
                else:
                    self._set_assignments(group, {}, error)
                    self.maybe_prepare_rebalance(
                        group, f"the assignment could not be stored: {error.name}"
                    )

        self._group_manager.store_group(group, complete, on_stored)
        self._group_manager.metrics.completed_rebalances.mark()

    def _set_assignments(
        self, group: GroupMetadata, assignments: Mapping[str, bytes], error: Errors
    ) -> None:
        if not group.is_in(GroupState.COMPLETING_REBALANCE):
            raise IllegalGroupStateError(
                f"group {group.group_id} awaits no assignment: it is {group.state.value}"
            )
        succeeded = error is Errors.NONE
        for member in group.members:
            member.assignment = assignments.get(member.member_id, b"")
            if group.maybe_invoke_sync_callback(
                member,
                SyncGroupResult(
                    error,
                    group.protocol_type if succeeded else None,
                    group.protocol_name if succeeded else None,
                    member.assignment,
                ),
            ):
                # While it waited for our answer its time-out was not looked at.
                self.schedule_next_heartbeat(group, member)

    def on_sync(self, group: GroupMetadata, member_id: str) -> None:
        """A member has asked for its assignment."""
        group.remove_pending_sync_member(member_id)
        self._rebalances.check_and_complete(GroupSyncKey(group.group_id))

    def on_expire_pending_sync(self, group: GroupMetadata, generation_id: int) -> None:
        with group.lock:
            pending = group.pending_sync_members
            if (
                generation_id != group.generation_id
                or not group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
                or not pending
            ):
                return
            for member_id in pending:
                group.remove(member_id)
                self.complete_heartbeat(group, member_id)
            self.maybe_prepare_rebalance(
                group, f"{', '.join(sorted(pending))} did not ask for an assignment in time"
            )
        self.on_expiration_done()

    def _remove_sync_expiration(self, group: GroupMetadata) -> None:
        group.clear_pending_sync_members()
        self._rebalances.check_and_complete(GroupSyncKey(group.group_id))

    # Heartbeats

    def schedule_next_heartbeat(self, group: GroupMetadata, member: MemberMetadata) -> None:
        """The member is alive: its session starts anew."""
        self._schedule_expiration(group, member, member.session_timeout_ms)

    def schedule_new_member_expiration(self, group: GroupMetadata, member: MemberMetadata) -> None:
        # A client that gave up waiting cannot be seen: its connection is muted while it waits.
        self._schedule_expiration(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)

    def schedule_pending_member_expiration(
        self, group: GroupMetadata, member_id: str, timeout_ms: int
    ) -> None:
        self._watch_heartbeat(group, member_id, timeout_ms, is_pending=True)

    def complete_heartbeat(self, group: GroupMetadata, member_id: str) -> None:
        """After a member has gone: nothing is left to expire."""
        self._heartbeats.check_and_complete(MemberKey(group.group_id, member_id))

    def _schedule_expiration(
        self, group: GroupMetadata, member: MemberMetadata, timeout_ms: int
    ) -> None:
        member.heartbeat_satisfied = True
        self.complete_heartbeat(group, member.member_id)
        member.heartbeat_satisfied = False
        self._watch_heartbeat(group, member.member_id, timeout_ms, is_pending=False)

    def _watch_heartbeat(
        self, group: GroupMetadata, member_id: str, timeout_ms: int, *, is_pending: bool
    ) -> None:
        self._heartbeats.try_complete_else_watch(
            DelayedHeartbeat(self, group, member_id, is_pending=is_pending, timeout_ms=timeout_ms),
            (MemberKey(group.group_id, member_id),),
        )

    def has_heartbeat(self, group: GroupMetadata, member_id: str, *, is_pending: bool) -> bool:
        with group.lock:
            if group.is_in(GroupState.DEAD):
                return True
            if is_pending:
                return group.has(member_id)
            return not group.has(member_id) or group.get(member_id).has_satisfied_heartbeat

    def on_expire_heartbeat(
        self, group: GroupMetadata, member_id: str, *, is_pending: bool
    ) -> None:
        with group.lock:
            if group.is_in(GroupState.DEAD):
                return
            if is_pending:
                # It may have joined while this waited for the lock.
                if group.is_pending_member(member_id):
                    logger.info("Group %s: %s has not joined in time", group.group_id, member_id)
                    self.remove_pending_member(group, member_id)
            elif group.has(member_id):
                member = group.get(member_id)
                if not member.has_satisfied_heartbeat:
                    logger.info("Group %s: member %s has failed", group.group_id, member_id)
                    self.remove_member(group, member, f"member {member_id} sent no heartbeat")

    # Members that go

    def remove_member(self, group: GroupMetadata, member: MemberMetadata, reason: str) -> None:
        # If the client still waits for its first generation, this makes it try again.
        group.maybe_invoke_join_callback(
            member, JoinGroupResult(UNKNOWN_MEMBER_ID, Errors.UNKNOWN_MEMBER_ID)
        )
        # An administrator may remove a member that waits for its assignment: none will come.
        group.maybe_invoke_sync_callback(member, SyncGroupResult(Errors.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)
        if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.maybe_prepare_rebalance(group, reason)
        else:
            self.maybe_complete_join(group)

    def remove_pending_member(self, group: GroupMetadata, member_id: str) -> None:
        group.remove(member_id)
        self.maybe_complete_join(group)

    # Groups that come and go

    def on_group_loaded(self, group: GroupMetadata) -> None:
        with group.lock:
            logger.info("Loading %r", group)
            if group.size > self._config.group_max_size:
                # Gives the members a chance to commit before some of them have to go.
                self.prepare_rebalance(
                    group, f"it has more members than group.max.size: {group.size}"
                )
            for member in group.members:
                self.schedule_next_heartbeat(group, member)

    def on_group_unloaded(self, group: GroupMetadata) -> None:
        with group.lock:
            previous = group.state
            logger.info("Unloading %r", group)
            group.transition_to(GroupState.DEAD)
            for member in group.members:
                group.maybe_invoke_join_callback(
                    member, JoinGroupResult(member.member_id, Errors.NOT_COORDINATOR)
                )
                group.maybe_invoke_sync_callback(member, SyncGroupResult(Errors.NOT_COORDINATOR))
            if previous is GroupState.PREPARING_REBALANCE:
                self._rebalances.check_and_complete(GroupJoinKey(group.group_id))
            self._remove_sync_expiration(group)
