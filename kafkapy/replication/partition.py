"""One partition, as the broker that hosts a replica of it sees it."""

from __future__ import annotations

import logging
from typing import NamedTuple
from uuid import UUID

from kafkapy.common.errors import (
    Errors,
    FencedLeaderEpochError,
    NotEnoughReplicasError,
    NotLeaderOrFollowerError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownLeaderEpochError,
)
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.leader_and_isr import LeaderRecoveryState
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.replication.alter_partition_manager import AlterPartitionManager
from kafkapy.replication.delayed_operations import DelayedOperations
from kafkapy.replication.fetch_partition_result import DivergingEpoch
from kafkapy.replication.isr_change_listener import IsrChangeListener
from kafkapy.replication.isr_updates import IsrUpdates
from kafkapy.replication.lazy_offset_checkpoints import LazyOffsetCheckpoints
from kafkapy.replication.partition_metrics import PartitionMetrics
from kafkapy.replication.partition_offset_lookup import PartitionOffsetLookup
from kafkapy.replication.partition_state import (
    AssignmentState,
    CommittedPartitionState,
    PartitionState,
)
from kafkapy.replication.replica import Replica
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.fetch_data_info import FetchDataInfo
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.fetch_params import FetchParams, FetchPartitionData
from kafkapy.storage.log_append_info import LeaderHwChange, LogAppendInfo
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.log_offset_bounds import LogOffsetSnapshot
from kafkapy.storage.log_offset_metadata import LogOffsetMetadata
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.storage.verification_state_entry import VerificationGuard
from kafkapy.utils.locks import ReentrantReadWriteLock
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

LeaderAndIsrPartitionState = LeaderAndIsrRequest.LeaderAndIsrPartitionState

# DeleteRecords: everything below the high watermark.
DELETE_TO_HIGH_WATERMARK = -1
UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class LogReadInfo(NamedTuple):
    """A read with the log's offsets as they were before it. A tuple: one per partition and fetch.

    Ports: org.apache.kafka.storage.internals.log.LogReadInfo
    """

    fetched_data: FetchDataInfo
    diverging_epoch: DivergingEpoch | None
    high_watermark: int
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int


class EpochEndOffset(NamedTuple):
    """Where the largest epoch not above the one asked for ends; -1 and -1 when there is none."""

    leader_epoch: int = UNDEFINED_EPOCH
    end_offset: int = UNDEFINED_EPOCH_OFFSET


class DeleteRecordsOutcome(NamedTuple):
    """The offset that records are deleted up to, and the low watermark reached so far."""

    requested_offset: int
    low_watermark: int


class Partition:
    """Leadership, ISR and log of one partition. Thread-safe.

    Appends and reads hold `leader_isr_update_lock` for reading, changes of leadership and ISR hold
    it for writing; the log's own lock comes after it. Fields it guards are replaced, never changed,
    so a lone read needs no lock. Purgatories are completed with no lock held.

    Ports: kafka.cluster.Partition
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        *,
        local_broker_id: int,
        replica_lag_time_max_ms: int,
        time: Time,
        log_manager: LogManager,
        metadata_cache: MetadataCache,
        delayed_operations: DelayedOperations,
        alter_partition_manager: AlterPartitionManager,
        isr_change_listener: IsrChangeListener,
        metrics: MetricsRegistry,
    ) -> None:
        # constant after construction
        self.topic_partition = topic_partition
        self.local_broker_id = local_broker_id
        self.replica_lag_time_max_ms = replica_lag_time_max_ms
        self._time = time
        self._log_manager = log_manager
        self._metadata_cache = metadata_cache
        self._delayed_operations = delayed_operations
        self.offset_lookup = PartitionOffsetLookup(self)
        self._isr_updates = IsrUpdates(self, alter_partition_manager, isr_change_listener)
        self.leader_isr_update_lock = ReentrantReadWriteLock()
        # guarded by self.leader_isr_update_lock
        self.log: UnifiedLog | None = None
        self.leader_replica_id: int | None = None
        self.leader_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self.partition_epoch = -1
        self.controller_epoch = 0
        self.remote_replicas: dict[int, Replica] = {}
        self.state: PartitionState = CommittedPartitionState(frozenset())
        self.assignment = AssignmentState()
        self._metrics = PartitionMetrics(self, metrics)

    def __str__(self) -> str:
        return f"Partition({self.topic_partition}, leader={self.leader_replica_id})"

    # State

    @property
    def topic_id(self) -> UUID | None:
        """That of the log, even of one on disk that this partition has not taken up yet."""
        log = self.log
        if log is None:
            log = self._log_manager.get_log(self.topic_partition)
        return log.topic_id if log is not None else None

    @property
    def is_leader(self) -> bool:
        return self.leader_replica_id == self.local_broker_id

    @property
    def leader_log_if_local(self) -> UnifiedLog | None:
        return self.log if self.leader_replica_id == self.local_broker_id else None

    @property
    def in_sync_replica_ids(self) -> frozenset[int]:
        return self.state.isr

    @property
    def is_under_replicated(self) -> bool:
        return self.is_leader and self.assignment.replication_factor > len(self.state.isr)

    @property
    def is_under_min_isr(self) -> bool:
        log = self.leader_log_if_local
        return log is not None and len(self.state.isr) < self.effective_min_isr(log)

    @property
    def is_at_min_isr(self) -> bool:
        log = self.leader_log_if_local
        return log is not None and len(self.state.isr) == self.effective_min_isr(log)

    @property
    def is_reassigning(self) -> bool:
        return self.is_leader and self.assignment.is_reassigning

    def is_adding_replica(self, replica_id: int) -> bool:
        return self.assignment.is_adding_replica(replica_id)

    def effective_min_isr(self, leader_log: UnifiedLog) -> int:
        """More than there are replicas cannot be asked for."""
        return min(leader_log.config.min_insync_replicas, len(self.remote_replicas) + 1)

    @property
    def local_log_or_raise(self) -> UnifiedLog:
        if self.log is None:
            raise NotLeaderOrFollowerError(
                f"broker {self.local_broker_id} has no log of {self.topic_partition}"
            )
        return self.log

    def local_log_with_epoch_or_raise(
        self, current_leader_epoch: int | None, *, require_leader: bool
    ) -> UnifiedLog:
        """The local log, if the client's view of the leader's epoch is neither old nor new to us.

        Needs leader_isr_update_lock held.
        """
        if current_leader_epoch is not None and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                raise FencedLeaderEpochError(
                    f"epoch {current_leader_epoch} of {self.topic_partition} is older than "
                    f"{self.leader_epoch}"
                )
            raise UnknownLeaderEpochError(
                f"epoch {current_leader_epoch} of {self.topic_partition} is newer than "
                f"{self.leader_epoch}"
            )
        log = self.log
        if log is None or (require_leader and self.leader_replica_id != self.local_broker_id):
            raise NotLeaderOrFollowerError(
                f"broker {self.local_broker_id} does not "
                f"{'lead' if require_leader else 'host'} {self.topic_partition}"
            )
        return log

    # Leadership

    def make_leader(
        self,
        state: LeaderAndIsrPartitionState,
        checkpoints: LazyOffsetCheckpoints,
        topic_id: UUID | None,
    ) -> bool:
        """Lead from now on; whether that is new. Raises KafkaStorageError if the log cannot be.

        The high watermark may have moved: the caller completes delayed requests, with no lock held.
        """
        with self.leader_isr_update_lock.write():
            if self._is_stale_locked(state):
                return False
            now_ms = self._time.hi_res_clock_ms()
            is_new_leader = not self.is_leader
            self._update_assignment_and_isr_locked(state, is_leader=True)
            self.controller_epoch = state.controller_epoch
            leader_log = self._create_log_if_not_exists_locked(
                checkpoints, is_new=state.is_new, topic_id=topic_id
            )
            if state.leader_epoch > self.leader_epoch:
                epoch_start_offset = leader_log.log_end_offset
                # A follower may have records of a later epoch than any in this log: with the new
                # epoch cached, even before its first record, every question of where an epoch ends
                # finds an answer that the follower can truncate to.
                leader_log.maybe_assign_epoch_start_offset(state.leader_epoch, epoch_start_offset)
                for replica in self.remote_replicas.values():
                    replica.reset_state(
                        now_ms=now_ms,
                        leader_end_offset=epoch_start_offset,
                        is_new_leader=is_new_leader,
                        is_in_sync=replica.broker_id in state.isr,
                    )
                self.leader_epoch = state.leader_epoch
                self.leader_epoch_start_offset = epoch_start_offset
                logger.info(
                    "Leader of %s from offset %d, epoch %d, ISR %s",
                    self.topic_partition,
                    epoch_start_offset,
                    state.leader_epoch,
                    state.isr,
                )
            self.partition_epoch = state.partition_epoch
            self.leader_replica_id = self.local_broker_id
            # The ISR may be down to this broker.
            self.maybe_increment_leader_hw(leader_log, now_ms)
            return is_new_leader

    def make_follower(
        self,
        state: LeaderAndIsrPartitionState,
        checkpoints: LazyOffsetCheckpoints,
        topic_id: UUID | None,
    ) -> bool:
        """Follow from now on; whether the epoch is new, so that fetching must start over."""
        with self.leader_isr_update_lock.write():
            if self._is_stale_locked(state):
                return False
            is_new_epoch = state.leader_epoch > self.leader_epoch
            # Before the ISR is emptied, or it would seem for a moment that we lead without one.
            self.leader_replica_id = state.leader
            self.leader_epoch = state.leader_epoch
            self.leader_epoch_start_offset = None
            self.partition_epoch = state.partition_epoch
            self._update_assignment_and_isr_locked(state, is_leader=False)
            self.controller_epoch = state.controller_epoch
            self._create_log_if_not_exists_locked(
                checkpoints, is_new=state.is_new, topic_id=topic_id
            )
            return is_new_epoch

    def create_log_if_not_exists(
        self, checkpoints: LazyOffsetCheckpoints, *, is_new: bool, topic_id: UUID | None
    ) -> None:
        with self.leader_isr_update_lock.write():
            self._create_log_if_not_exists_locked(checkpoints, is_new=is_new, topic_id=topic_id)

    def _is_stale_locked(self, state: LeaderAndIsrPartitionState) -> bool:
        # Equal is fine: the answer to our own ISR change may have told us the epoch first.
        if state.partition_epoch >= self.partition_epoch:
            return False
        logger.info(
            "State of %s with partition epoch %d is older than %d and left out",
            self.topic_partition,
            state.partition_epoch,
            self.partition_epoch,
        )
        return True

    def _update_assignment_and_isr_locked(
        self, state: LeaderAndIsrPartitionState, *, is_leader: bool
    ) -> None:
        known = self.remote_replicas
        self.remote_replicas = (
            {
                broker_id: known.get(broker_id) or Replica(broker_id, self.topic_partition)
                for broker_id in state.replicas
                if broker_id != self.local_broker_id
            }
            if is_leader
            else {}
        )
        self.assignment = AssignmentState(
            tuple(state.replicas), tuple(state.adding_replicas), tuple(state.removing_replicas)
        )
        self.state = CommittedPartitionState(
            frozenset(state.isr if is_leader else ()),
            LeaderRecoveryState(state.leader_recovery_state),
        )

    def _create_log_if_not_exists_locked(
        self, checkpoints: LazyOffsetCheckpoints, *, is_new: bool, topic_id: UUID | None
    ) -> UnifiedLog:
        log = self.log
        if log is None:
            log = self._load_log_locked(checkpoints, is_new=is_new, topic_id=topic_id)
        if topic_id is not None:
            # A log from before topics had ids gets its own now.
            log.assign_topic_id(topic_id)
        return log

    def _load_log_locked(
        self, checkpoints: LazyOffsetCheckpoints, *, is_new: bool, topic_id: UUID | None
    ) -> UnifiedLog:
        log = self._log_manager.get_or_create_log(
            self.topic_partition, is_new=is_new, topic_id=topic_id
        )
        checkpointed = checkpoints.fetch(log.parent_dir, self.topic_partition)
        high_watermark = log.update_high_watermark(checkpointed if checkpointed is not None else 0)
        logger.info("Log of %s loaded with high watermark %d", self.topic_partition, high_watermark)
        self.log = log
        return log

    def delete(self) -> None:
        """The replica is gone: forget the log, whose files are the log manager's business."""
        with self.leader_isr_update_lock.write():
            self.remote_replicas = {}
            self.assignment = AssignmentState()
            self.state = CommittedPartitionState(frozenset())
            self.log = None
            self.leader_replica_id = None
            self.leader_epoch_start_offset = None
        self._metrics.remove()

    def mark_offline(self) -> None:
        """The log's directory is lost; what still holds this object finds no leader here."""
        with self.leader_isr_update_lock.write():
            self.log = None
            self.leader_replica_id = None
            self.state = CommittedPartitionState(frozenset())
        self._metrics.remove()

    # Appends

    def append_records_to_leader(
        self,
        records: MemoryRecords,
        origin: AppendOrigin,
        required_acks: int,
        verification_guard: VerificationGuard = VerificationGuard.SENTINEL,
    ) -> LogAppendInfo:
        with self.leader_isr_update_lock.read():
            if self.leader_replica_id != self.local_broker_id or (log := self.log) is None:
                raise NotLeaderOrFollowerError(
                    f"broker {self.local_broker_id} does not lead {self.topic_partition}"
                )
            if required_acks == -1:
                min_isr = self.effective_min_isr(log)
                if len(self.state.isr) < min_isr:
                    raise NotEnoughReplicasError(
                        f"the ISR {sorted(self.state.isr)} of {self.topic_partition} is smaller "
                        f"than min.insync.replicas = {min_isr}"
                    )
            info = log.append_as_leader(
                records, self.leader_epoch, origin=origin, verification_guard=verification_guard
            )
            info.leader_hw_change = (
                LeaderHwChange.INCREASED
                if self.maybe_increment_leader_hw(log)
                else LeaderHwChange.SAME
            )
            return info

    def maybe_start_transaction_verification(
        self, producer_id: int, *, sequence: int, epoch: int
    ) -> VerificationGuard:
        """The guard to append with; the sentinel if there is nothing to verify."""
        log = self.leader_log_if_local
        if log is None:
            raise NotLeaderOrFollowerError(
                f"broker {self.local_broker_id} does not lead {self.topic_partition}"
            )
        return log.maybe_start_transaction_verification(producer_id, sequence=sequence, epoch=epoch)

    def append_records_to_follower(self, records: MemoryRecords) -> LogAppendInfo:
        with self.leader_isr_update_lock.read():
            return self.local_log_or_raise.append_as_follower(records)

    def maybe_increment_leader_hw(self, leader_log: UnifiedLog, now_ms: int | None = None) -> bool:
        """Raise the high watermark to the smallest log end among the replicas that count.

        Those are the maximal ISR and followers about to join it: a high watermark that left them
        behind would keep them out for as long as records come in. Under min.insync.replicas
        nothing is committed. Needs leader_isr_update_lock held.
        """
        new_high_watermark = leader_log.log_end_offset_metadata
        replicas = self.remote_replicas
        if replicas:
            state = self.state
            if len(state.isr) < self.effective_min_isr(leader_log):
                return False
            if now_ms is None:
                now_ms = self._time.hi_res_clock_ms()
            leader_end_offset = new_high_watermark.message_offset
            maximal_isr = state.maximal_isr
            for replica in replicas.values():
                replica_state = replica.state
                follower_end = replica_state.log_end_offset_metadata
                if follower_end.message_offset < new_high_watermark.message_offset and (
                    replica.broker_id in maximal_isr
                    or (
                        replica_state.is_caught_up(
                            leader_end_offset,
                            now_ms=now_ms,
                            max_lag_ms=self.replica_lag_time_max_ms,
                        )
                        and self.is_replica_isr_eligible(replica.broker_id)
                    )
                ):
                    new_high_watermark = follower_end
        elif not self.state.isr:
            return False
        return leader_log.maybe_increment_high_watermark(new_high_watermark) is not None

    def check_enough_replicas_reach_offset(self, required_offset: int) -> tuple[bool, Errors]:
        """Whether everything below `required_offset` is committed; an error ends the wait too."""
        log = self.leader_log_if_local
        if log is None:
            return False, Errors.NOT_LEADER_OR_FOLLOWER
        if log.high_watermark < required_offset:
            return False, Errors.NONE
        # The records are written, but the ISR may have shrunk since.
        if self.effective_min_isr(log) <= len(self.state.maximal_isr):
            return True, Errors.NONE
        return True, Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    # Reads

    def fetch_records(
        self,
        params: FetchParams,
        data: FetchPartitionData,
        *,
        fetch_time_ms: int,
        max_bytes: int,
        min_one_message: bool,
        update_fetch_state: bool,
    ) -> LogReadInfo:
        """Read for a consumer or a follower; a follower's fetch also tells how far it has come."""
        replica: Replica | None = None
        with self.leader_isr_update_lock.read():
            log = self.local_log_with_epoch_or_raise(
                data.current_leader_epoch, require_leader=params.fetch_only_leader
            )
            if params.replica_id >= 0:
                replica = self._follower_replica_or_raise(params.replica_id, data)
            # Taken before the read: what is appended meanwhile must not keep a follower from
            # counting as caught up.
            high_watermark = log.high_watermark
            log_start_offset = log.log_start_offset
            log_end_offset = log.log_end_offset
            last_stable_offset = log.last_stable_offset
            diverging = (
                self._diverging_epoch(log, data, log_start_offset)
                if data.last_fetched_epoch is not None
                else None
            )
            fetched = (
                log.read(
                    data.fetch_offset, max_bytes, params.isolation, min_one_message=min_one_message
                )
                if diverging is None
                else FetchDataInfo(LogOffsetMetadata(data.fetch_offset), MemoryRecords.EMPTY)
            )
        if replica is not None and update_fetch_state and diverging is None:
            self.update_follower_fetch_state(
                replica,
                fetched.fetch_offset_metadata,
                start_offset=data.log_start_offset,
                fetch_time_ms=fetch_time_ms,
                leader_end_offset=log_end_offset,
                broker_epoch=params.replica_epoch,
            )
        return LogReadInfo(
            fetched, diverging, high_watermark, log_start_offset, log_end_offset, last_stable_offset
        )

    def _follower_replica_or_raise(self, replica_id: int, data: FetchPartitionData) -> Replica:
        replica = self.remote_replicas.get(replica_id)
        if replica is not None:
            return replica
        message = f"broker {replica_id} is not known as a replica of {self.topic_partition}"
        if data.current_leader_epoch is not None:
            # The epochs match, so the follower just learnt of its assignment before we did.
            raise UnknownLeaderEpochError(message)
        raise NotLeaderOrFollowerError(message)

    def _diverging_epoch(
        self, log: UnifiedLog, data: FetchPartitionData, log_start_offset: int
    ) -> DivergingEpoch | None:
        """Where the fetcher's log parts from ours, if it does before its fetch offset."""
        fetch_epoch = data.last_fetched_epoch
        assert fetch_epoch is not None
        end = _end_offset_for_epoch(log, fetch_epoch)
        if end.end_offset == UNDEFINED_EPOCH_OFFSET or end.leader_epoch == UNDEFINED_EPOCH:
            raise OffsetOutOfRangeError(
                f"the end of epoch {fetch_epoch} of {self.topic_partition} is not known"
            )
        if data.fetch_offset < log_start_offset:
            raise OffsetOutOfRangeError(
                f"offset {data.fetch_offset} of {self.topic_partition} is below the log's start "
                f"{log_start_offset}"
            )
        if end.leader_epoch < fetch_epoch or end.end_offset < data.fetch_offset:
            return DivergingEpoch(end.leader_epoch, end.end_offset)
        return None

    def fetch_offset_snapshot(
        self, current_leader_epoch: int | None, *, fetch_only_from_leader: bool
    ) -> LogOffsetSnapshot:
        with self.leader_isr_update_lock.read():
            return self.local_log_with_epoch_or_raise(
                current_leader_epoch, require_leader=fetch_only_from_leader
            ).fetch_offset_snapshot()

    def fetch_end_offset(
        self,
        isolation: FetchIsolation,
        *,
        current_leader_epoch: int | None,
        fetch_only_from_leader: bool,
    ) -> LogOffsetMetadata:
        """Up to where such a fetch may read. Unlike a snapshot it does not wait for appends."""
        with self.leader_isr_update_lock.read():
            log = self.local_log_with_epoch_or_raise(
                current_leader_epoch, require_leader=fetch_only_from_leader
            )
            if isolation is FetchIsolation.HIGH_WATERMARK:
                return log.fetch_high_watermark_metadata()
            if isolation is FetchIsolation.LOG_END:
                return log.log_end_offset_metadata
            return log.fetch_last_stable_offset_metadata()

    def last_offset_for_leader_epoch(
        self,
        leader_epoch: int,
        *,
        current_leader_epoch: int | None,
        fetch_only_from_leader: bool,
    ) -> EpochEndOffset:
        with self.leader_isr_update_lock.read():
            log = self.local_log_with_epoch_or_raise(
                current_leader_epoch, require_leader=fetch_only_from_leader
            )
            return _end_offset_for_epoch(log, leader_epoch)

    # Deleting records

    def delete_records_on_leader(self, offset: int) -> DeleteRecordsOutcome:
        with self.leader_isr_update_lock.read():
            log = self.leader_log_if_local
            if log is None:
                raise NotLeaderOrFollowerError(
                    f"broker {self.local_broker_id} does not lead {self.topic_partition}"
                )
            if not log.config.delete:
                raise PolicyViolationError(
                    f"cleanup.policy of {self.topic_partition} does not allow deleting records"
                )
            if offset == DELETE_TO_HIGH_WATERMARK:
                offset = log.high_watermark
            if offset < 0:
                raise OffsetOutOfRangeError(
                    f"offset {offset} of {self.topic_partition} is negative"
                )
            log.maybe_increment_log_start_offset(offset, "a client's deletion of records")
            return DeleteRecordsOutcome(offset, self.low_watermark_if_leader)

    @property
    def low_watermark_if_leader(self) -> int:
        """The smallest log start among live replicas: below it records are gone everywhere."""
        log = self.leader_log_if_local
        if log is None:
            raise NotLeaderOrFollowerError(
                f"broker {self.local_broker_id} does not lead {self.topic_partition}"
            )
        low_watermark = log.log_start_offset
        for replica in self.remote_replicas.values():
            log_start_offset = replica.state.log_start_offset
            if log_start_offset < low_watermark and self._metadata_cache.has_alive_broker(
                replica.broker_id
            ):
                low_watermark = log_start_offset
        return low_watermark

    # Followers and the ISR

    def update_follower_fetch_state(
        self,
        replica: Replica,
        fetch_offset: LogOffsetMetadata,
        *,
        start_offset: int,
        fetch_time_ms: int,
        leader_end_offset: int,
        broker_epoch: int,
    ) -> None:
        """A follower has fetched: it may join the ISR, and either watermark may move.

        Called with no lock held.
        """
        deletes_wait = self._delayed_operations.num_delayed_delete > 0
        old_low_watermark = self.low_watermark_if_leader if deletes_wait else -1
        old_end_offset = replica.state.log_end_offset
        with self.leader_isr_update_lock.read():
            replica.update_fetch_state(
                fetch_offset,
                start_offset=start_offset,
                fetch_time_ms=fetch_time_ms,
                leader_end_offset=leader_end_offset,
                broker_epoch=broker_epoch,
            )
        low_watermark_incremented = (
            deletes_wait and self.low_watermark_if_leader > old_low_watermark
        )
        self._isr_updates.maybe_expand_isr(replica)
        high_watermark_incremented = False
        if replica.state.log_end_offset != old_end_offset:
            with self.leader_isr_update_lock.read():
                log = self.leader_log_if_local
                if log is not None:
                    high_watermark_incremented = self.maybe_increment_leader_hw(log, fetch_time_ms)
        if low_watermark_incremented or high_watermark_incremented:
            self._delayed_operations.check_and_complete_all(self.topic_partition)

    def is_replica_isr_eligible(self, broker_id: int) -> bool:
        return self._metadata_cache.has_alive_broker(broker_id)

    def maybe_shrink_isr(self) -> None:
        """Propose to drop the followers that lag for too long. Called with no lock held."""
        self._isr_updates.maybe_shrink_isr(self._time.hi_res_clock_ms())

    def complete_delayed_requests(self) -> None:
        self._delayed_operations.check_and_complete_all(self.topic_partition)


def _end_offset_for_epoch(log: UnifiedLog, leader_epoch: int) -> EpochEndOffset:
    found = log.end_offset_for_epoch(leader_epoch)
    if found is None:
        return EpochEndOffset()
    return EpochEndOffset(found.leader_epoch, found.offset)
