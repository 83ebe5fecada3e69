"""The broker's part in consumer groups."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from kafkapy.common.errors import Errors
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TopicPartition
from kafkapy.coordinator.group.delayed_heartbeat import DelayedHeartbeat
from kafkapy.coordinator.group.delayed_rebalance import DelayedRebalance
from kafkapy.coordinator.group.group_coordinator_config import GroupCoordinatorConfig
from kafkapy.coordinator.group.group_joins import GroupJoins, JoinGroup, validate_current_member
from kafkapy.coordinator.group.group_metadata import GroupMetadata, GroupOverview, GroupSummary
from kafkapy.coordinator.group.group_metadata_manager import (
    CommitCallback,
    Commits,
    GroupMetadataManager,
    TxnCompletionCallback,
    offset_commit_error,
)
from kafkapy.coordinator.group.group_rebalances import GroupRebalances
from kafkapy.coordinator.group.group_results import (
    UNKNOWN_MEMBER_ID,
    JoinCallback,
    JoinGroupResult,
    LeaveGroupResult,
    MemberIdentity,
    SyncCallback,
    SyncGroupResult,
)
from kafkapy.coordinator.group.group_state import GroupState
from kafkapy.coordinator.group.offset_and_metadata import OffsetAndMetadata
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.replication.transaction_verification import TransactionVerification
from kafkapy.storage.verification_state_entry import VerificationGuard
from kafkapy.utils.scheduler import KafkaScheduler, Scheduler
from kafkapy.utils.time import Time
from kafkapy.utils.timer import SystemTimer, Timer

# These take a group without a name, which consumers of old used for their offsets.
_APIS_WITH_EMPTY_GROUP_ID = frozenset(
    {
        ApiKeys.OFFSET_COMMIT,
        ApiKeys.OFFSET_FETCH,
        ApiKeys.DESCRIBE_GROUPS,
        ApiKeys.DELETE_GROUPS,
    }
)
_EMPTY_GROUP = GroupSummary("")
_DEAD_GROUP = GroupSummary(GroupState.DEAD.value)
_CLASSIC = "classic"


class GroupCoordinator:
    """Groups whose partition of __consumer_offsets is led here: members, offsets, administration.

    Thread-safe. Callbacks may run on any thread, often before the call returns and with the
    group's lock held: they only hand over a response.

    Ports: kafka.coordinator.group.GroupCoordinator
    """

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        *,
        broker_id: int,
        replica_manager: ReplicaManager,
        transaction_verification: TransactionVerification,
        time: Time,
        metrics: MetricsRegistry,
        scheduler: Scheduler | None = None,
        timer: Callable[[str], Timer] | None = None,
        reaper_enabled: bool = True,
    ) -> None:
        # constant after construction
        self._config = config
        self._transaction_verification = transaction_verification
        make_timer = timer or (lambda name: SystemTimer(name, time))
        self._group_manager = GroupMetadataManager(
            config,
            replica_manager=replica_manager,
            scheduler=scheduler or KafkaScheduler(1, time, "group-metadata-manager-"),
            time=time,
            metrics=metrics,
        )
        heartbeat_purgatory: DelayedOperationPurgatory[DelayedHeartbeat] = (
            DelayedOperationPurgatory(
                "Heartbeat",
                make_timer("Heartbeat"),
                broker_id,
                metrics=metrics,
                reaper_enabled=reaper_enabled,
            )
        )
        rebalance_purgatory: DelayedOperationPurgatory[DelayedRebalance] = (
            DelayedOperationPurgatory(
                "Rebalance",
                make_timer("Rebalance"),
                broker_id,
                metrics=metrics,
                reaper_enabled=reaper_enabled,
            )
        )
        self._rebalances = GroupRebalances(
            config,
            self._group_manager,
            heartbeat_purgatory=heartbeat_purgatory,
            rebalance_purgatory=rebalance_purgatory,
            replica_manager=replica_manager,
        )
        self._joins = GroupJoins(config, self._group_manager, self._rebalances)
        self._active = threading.Event()

    def startup(self, num_partitions: int, *, enable_expiration: bool = True) -> None:
        """`num_partitions` is that of __consumer_offsets, or what it will be created with."""
        self._group_manager.startup(num_partitions, enable_expiration=enable_expiration)
        self._active.set()

    def shutdown(self) -> None:
        """Members that still wait are left unanswered."""
        self._active.clear()
        self._group_manager.shutdown()
        self._rebalances.shutdown()

    # Leadership of __consumer_offsets

    def partition_for(self, group_id: str) -> int:
        return self._group_manager.partition_for(group_id)

    def on_election(self, partition: int, coordinator_epoch: int) -> None:
        """Load the partition's groups, in the background."""
        self._group_manager.schedule_load_groups_and_offsets(
            partition, coordinator_epoch, self._rebalances.on_group_loaded
        )

    def on_resignation(self, partition: int, coordinator_epoch: int | None) -> None:
        """Forget the partition's groups; their members are told to look elsewhere."""
        self._group_manager.remove_groups_for_partition(
            partition, coordinator_epoch, self._rebalances.on_group_unloaded
        )

    def validate_group_status(self, group_id: str, api_key: ApiKeys) -> Errors | None:
        if not group_id and api_key not in _APIS_WITH_EMPTY_GROUP_ID:
            return Errors.INVALID_GROUP_ID
        if not self._active.is_set():
            return Errors.COORDINATOR_NOT_AVAILABLE
        if self._group_manager.is_group_loading(group_id):
            return Errors.COORDINATOR_LOAD_IN_PROGRESS
        if not self._group_manager.is_group_local(group_id):
            return Errors.NOT_COORDINATOR
        return None

    # Members

    def handle_join_group(self, request: JoinGroup, callback: JoinCallback) -> None:
        error = self.validate_group_status(request.group_id, ApiKeys.JOIN_GROUP)
        config = self._config
        if error is None and not (
            config.group_min_session_timeout_ms
            <= request.session_timeout_ms
            <= config.group_max_session_timeout_ms
        ):
            error = Errors.INVALID_SESSION_TIMEOUT
        if error is not None:
            callback(JoinGroupResult(request.member_id, error))
        else:
            self._joins.join(request, callback)

    def handle_sync_group(
        self,
        group_id: str,
        *,
        generation_id: int,
        member_id: str,
        protocol_type: str | None,
        protocol_name: str | None,
        group_instance_id: str | None,
        assignments: Mapping[str, bytes],
        callback: SyncCallback,
    ) -> None:
        error = self.validate_group_status(group_id, ApiKeys.SYNC_GROUP)
        if error is Errors.COORDINATOR_LOAD_IN_PROGRESS:
            # The rebalance is lost: the member is to join again. Old clients know no other error.
            error = Errors.REBALANCE_IN_PROGRESS
        group = self._group_manager.get_group(group_id) if error is None else None
        if group is None:
            callback(SyncGroupResult(error or Errors.UNKNOWN_MEMBER_ID))
            return
        with group.lock:
            error = _validate_member(group, member_id, group_instance_id, generation_id)
            if error is None and not (
                protocol_type in (None, group.protocol_type)
                and protocol_name in (None, group.protocol_name)
            ):
                error = Errors.INCONSISTENT_GROUP_PROTOCOL
            if error is not None:
                callback(SyncGroupResult(error))
                return
            member = group.get(member_id)
            match group.state:
                case GroupState.PREPARING_REBALANCE:
                    callback(SyncGroupResult(Errors.REBALANCE_IN_PROGRESS))
                case GroupState.COMPLETING_REBALANCE:
                    member.awaiting_sync_callback = callback
                    self._rebalances.on_sync(group, member_id)
                    if group.is_leader(member_id):
                        self._rebalances.store_assignments(group, assignments)
                case GroupState.STABLE:
                    self._rebalances.on_sync(group, member_id)
                    callback(
                        SyncGroupResult(
                            Errors.NONE,
                            group.protocol_type,
                            group.protocol_name,
                            member.assignment,
                        )
                    )
                    self._rebalances.schedule_next_heartbeat(group, member)
                case _:
                    callback(SyncGroupResult(Errors.UNKNOWN_MEMBER_ID))

    def handle_heartbeat(
        self,
        group_id: str,
        *,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
    ) -> Errors:
        error = self.validate_group_status(group_id, ApiKeys.HEARTBEAT)
        if error is Errors.COORDINATOR_LOAD_IN_PROGRESS:
            return Errors.NONE  # it cannot be told yet whether the member is known
        if error is not None:
            return error
        group = self._group_manager.get_group(group_id)
        if group is None:
            return Errors.UNKNOWN_MEMBER_ID
        with group.lock:
            error = _validate_member(group, member_id, group_instance_id, generation_id)
            if error is not None:
                return error
            if group.is_in(GroupState.EMPTY):
                return Errors.UNKNOWN_MEMBER_ID
            self._rebalances.schedule_next_heartbeat(group, group.get(member_id))
            preparing = group.is_in(GroupState.PREPARING_REBALANCE)
            return Errors.REBALANCE_IN_PROGRESS if preparing else Errors.NONE

    def handle_leave_group(
        self, group_id: str, members: Sequence[MemberIdentity]
    ) -> LeaveGroupResult:
        error = self.validate_group_status(group_id, ApiKeys.LEAVE_GROUP)
        if error is not None:
            return LeaveGroupResult(error)
        group = self._group_manager.get_group(group_id)
        if group is None:
            return LeaveGroupResult(
                Errors.NONE, tuple((member, Errors.UNKNOWN_MEMBER_ID) for member in members)
            )
        with group.lock:
            if group.is_in(GroupState.DEAD):
                return LeaveGroupResult(Errors.COORDINATOR_NOT_AVAILABLE)
            return LeaveGroupResult(
                Errors.NONE, tuple((member, self._leave(group, member)) for member in members)
            )

    def _leave(self, group: GroupMetadata, identity: MemberIdentity) -> Errors:
        member_id = identity.member_id
        instance_id = identity.group_instance_id
        if member_id == UNKNOWN_MEMBER_ID:
            # An administrator removes an instance, whatever its member id is.
            current_id = (
                group.current_static_member_id(instance_id) if instance_id is not None else None
            )
            if current_id is None:
                return Errors.UNKNOWN_MEMBER_ID
            member_id = current_id
        elif group.is_pending_member(member_id):
            self._rebalances.remove_pending_member(group, member_id)
            self._rebalances.complete_heartbeat(group, member_id)
            return Errors.NONE
        else:
            error = validate_current_member(group, member_id, instance_id)
            if error is not None:
                return error
        reason = f"member {member_id} leaves"
        if identity.reason:
            reason += f" (it says: {identity.reason})"
        self._rebalances.remove_member(group, group.get(member_id), reason)
        self._rebalances.complete_heartbeat(group, member_id)
        return Errors.NONE

    # Offsets

    def handle_commit_offsets(
        self,
        group_id: str,
        *,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        offsets: Commits,
        callback: CommitCallback,
    ) -> None:
        error = self.validate_group_status(group_id, ApiKeys.OFFSET_COMMIT)
        group = self._group_manager.get_group(group_id) if error is None else None
        if group is None and error is None:
            if generation_id >= 0:
                # A member of a group that is gone.
                error = Errors.ILLEGAL_GENERATION
            else:
                group = self._group_manager.get_or_create_group(group_id)
        if group is None:
            callback(dict.fromkeys(offsets, error or Errors.UNKNOWN_SERVER_ERROR))
            return
        with group.lock:
            error = _validate_commit(
                group, member_id, group_instance_id, generation_id, is_transactional=False
            )
            if error is None and group.is_in(GroupState.COMPLETING_REBALANCE):
                # It should have committed before it joined; it is to join again.
                error = Errors.REBALANCE_IN_PROGRESS
            if error is not None:
                callback(dict.fromkeys(offsets, error))
                return
            if group.is_in(GroupState.STABLE, GroupState.PREPARING_REBALANCE):
                self._rebalances.schedule_next_heartbeat(group, group.get(member_id))
            self._group_manager.store_offsets(group, offsets, callback)

    def handle_txn_commit_offsets(
        self,
        group_id: str,
        *,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        member_id: str,
        group_instance_id: str | None,
        generation_id: int,
        offsets: Commits,
        supports_abortable_error: bool,
        callback: CommitCallback,
    ) -> None:
        """Stored once the transaction is known to have the group's partition; in force when
        `schedule_handle_txn_completion` says so."""
        error = self.validate_group_status(group_id, ApiKeys.TXN_OFFSET_COMMIT)
        if error is not None:
            callback(dict.fromkeys(offsets, error))
            return
        group = self._group_manager.get_or_create_group(group_id)

        def commit(error: Errors, guard: VerificationGuard) -> None:
            if error is not Errors.NONE:
                callback(dict.fromkeys(offsets, offset_commit_error(error)))
                return
            with group.lock:
                refusal = _validate_commit(
                    group, member_id, group_instance_id, generation_id, is_transactional=True
                )
                if refusal is not None:
                    callback(dict.fromkeys(offsets, refusal))
                    return
                self._group_manager.store_offsets(
                    group,
                    offsets,
                    callback,
                    producer_id=producer_id,
                    producer_epoch=producer_epoch,
                    verification_guard=guard,
                )

        self._transaction_verification.maybe_start_for_partition(
            TopicPartition(CONSUMER_OFFSETS_TOPIC, self.partition_for(group_id)),
            transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            supports_abortable_error=supports_abortable_error,
            callback=commit,
        )

    def schedule_handle_txn_completion(
        self,
        producer_id: int,
        offsets_partitions: Iterable[TopicPartition],
        transaction_result: TransactionResult,
        *,
        on_complete: TxnCompletionCallback,
    ) -> None:
        """A transaction has ended in these partitions of __consumer_offsets.

        `on_complete` is called, on another thread, when its offsets are in force or forgotten.
        """
        self._group_manager.schedule_handle_txn_completion(
            producer_id,
            frozenset(partition.partition for partition in offsets_partitions),
            is_commit=transaction_result is TransactionResult.COMMIT,
            on_complete=on_complete,
        )

    def handle_fetch_offsets(
        self,
        group_id: str,
        topic_partitions: Iterable[TopicPartition] | None,
        *,
        require_stable: bool,
    ) -> tuple[Errors, dict[TopicPartition, tuple[Errors, OffsetAndMetadata | None]]]:
        """None asks for every partition that has an offset."""
        error = self.validate_group_status(group_id, ApiKeys.OFFSET_FETCH)
        if error is not None:
            return error, {}
        return Errors.NONE, self._group_manager.get_offsets(
            group_id, topic_partitions, require_stable=require_stable
        )

    def handle_delete_offsets(
        self, group_id: str, topic_partitions: Collection[TopicPartition]
    ) -> tuple[Errors, dict[TopicPartition, Errors]]:
        error = self.validate_group_status(group_id, ApiKeys.OFFSET_DELETE)
        if error is not None:
            return error, {}
        group = self._group_manager.get_group(group_id)
        if group is None:
            return self._not_found(group_id), {}
        with group.lock:
            if group.is_in(GroupState.DEAD):
                return self._not_found(group_id), {}
            if group.is_in(GroupState.EMPTY):
                in_use = frozenset[TopicPartition]()
            elif group.is_consumer_group:
                in_use = frozenset(
                    tp for tp in topic_partitions if group.is_subscribed_to_topic(tp.topic)
                )
            else:
                return Errors.NON_EMPTY_GROUP, {}
            # Still under the lock: nobody subscribes and commits before they are gone.
            to_delete = [tp for tp in topic_partitions if tp not in in_use]
            if to_delete:
                deleted = self._group_manager.cleanup_group_metadata(
                    [group], lambda g: g.offsets.remove(to_delete)
                )
                self._group_manager.metrics.offset_deletions.mark(deleted)
        return Errors.NONE, {
            tp: Errors.GROUP_SUBSCRIBED_TO_TOPIC if tp in in_use else Errors.NONE
            for tp in topic_partitions
        }

    def handle_deleted_partitions(self, topic_partitions: Collection[TopicPartition]) -> None:
        """Nobody needs the offsets of topics that are gone."""
        if topic_partitions:
            self._group_manager.cleanup_group_metadata(
                self._group_manager.current_groups(),
                lambda group: group.offsets.remove(topic_partitions),
            )

    # Administration

    def handle_list_groups(
        self, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> tuple[Errors, list[GroupOverview]]:
        """Filters are compared without case; an empty one lets everything through."""
        if not self._active.is_set():
            return Errors.COORDINATOR_NOT_AVAILABLE, []
        wanted_states = {state.lower() for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        loading = self._group_manager.is_loading
        error = Errors.COORDINATOR_LOAD_IN_PROGRESS if loading else Errors.NONE
        if wanted_types and _CLASSIC not in wanted_types:
            return error, []
        overviews = []
        for group in self._group_manager.current_groups():
            with group.lock:
                overview = group.overview()
            if not wanted_states or overview.state.lower() in wanted_states:
                overviews.append(overview)
        return error, overviews

    def handle_describe_group(self, group_id: str) -> tuple[Errors, GroupSummary]:
        """A group that is not known is described as a dead one."""
        error = self.validate_group_status(group_id, ApiKeys.DESCRIBE_GROUPS)
        if error is not None:
            return error, _EMPTY_GROUP
        group = self._group_manager.get_group(group_id)
        if group is None:
            return Errors.NONE, _DEAD_GROUP
        with group.lock:
            return Errors.NONE, group.summary()

    def handle_delete_groups(self, group_ids: Iterable[str]) -> dict[str, Errors]:
        errors: dict[str, Errors] = {}
        to_delete: list[GroupMetadata] = []
        for group_id in dict.fromkeys(group_ids):
            error = self.validate_group_status(group_id, ApiKeys.DELETE_GROUPS)
            errors[group_id] = error or self._mark_for_deletion(group_id, to_delete)
        self._group_manager.cleanup_group_metadata(
            to_delete, lambda group: group.offsets.remove_all()
        )
        return errors

    def _mark_for_deletion(self, group_id: str, to_delete: list[GroupMetadata]) -> Errors:
        group = self._group_manager.get_group(group_id)
        if group is None:
            return self._not_found(group_id)
        with group.lock:
            match group.state:
                case GroupState.DEAD:
                    return self._not_found(group_id)
                case GroupState.EMPTY:
                    group.transition_to(GroupState.DEAD)
                    to_delete.append(group)
                    return Errors.NONE
                case _:
                    return Errors.NON_EMPTY_GROUP

    def _not_found(self, group_id: str) -> Errors:
        not_exists = self._group_manager.group_not_exists(group_id)
        return Errors.GROUP_ID_NOT_FOUND if not_exists else Errors.NOT_COORDINATOR


def _validate_member(
    group: GroupMetadata, member_id: str, group_instance_id: str | None, generation_id: int
) -> Errors | None:
    if group.is_in(GroupState.DEAD):
        # It is being removed or goes to another broker: the client finds out where.
        return Errors.COORDINATOR_NOT_AVAILABLE
    error = validate_current_member(group, member_id, group_instance_id)
    if error is None and generation_id != group.generation_id:
        error = Errors.ILLEGAL_GENERATION
    return error


def _validate_commit(
    group: GroupMetadata,
    member_id: str,
    group_instance_id: str | None,
    generation_id: int,
    *,
    is_transactional: bool,
) -> Errors | None:
    if group.is_in(GroupState.DEAD):
        return Errors.COORDINATOR_NOT_AVAILABLE
    if generation_id < 0 and group.is_in(GroupState.EMPTY):
        return None  # a consumer that only stores offsets, or an administrator
    if generation_id >= 0 or member_id != UNKNOWN_MEMBER_ID or group_instance_id is not None:
        return _validate_member(group, member_id, group_instance_id, generation_id)
    # Transactions of old clients name neither member nor generation.
    if is_transactional or group.is_in(GroupState.EMPTY):
        return None
    return Errors.UNKNOWN_MEMBER_ID
