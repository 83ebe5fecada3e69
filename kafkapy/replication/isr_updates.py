"""Growing and shrinking the ISR of a partition."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafkapy.common.errors import Errors, KafkaError
from kafkapy.common.types import ZERO_UUID, TopicIdPartition
from kafkapy.metadata.leader_and_isr import LeaderAndIsr
from kafkapy.replication.alter_partition_manager import AlterPartitionManager
from kafkapy.replication.isr_change_listener import IsrChangeListener
from kafkapy.replication.partition_state import (
    CommittedPartitionState,
    PendingExpandIsr,
    PendingPartitionState,
    PendingShrinkIsr,
)
from kafkapy.replication.replica import Replica

if TYPE_CHECKING:
    from kafkapy.replication.partition import Partition

logger = logging.getLogger(__name__)

# The answer says that nothing was changed and that our view was right: the old state stands.
_NOT_APPLIED = frozenset({Errors.OPERATION_NOT_ATTEMPTED, Errors.INELIGIBLE_REPLICA})
# Our view is out of date: a new state is on its way, and until it comes nothing may be proposed.
_OUT_OF_DATE = frozenset(
    {
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.FENCED_LEADER_EPOCH,
        Errors.INVALID_UPDATE_VERSION,
        Errors.INVALID_REQUEST,
        Errors.NEW_LEADER_ELECTED,
    }
)


class IsrUpdates:
    """Proposes ISRs for one partition, one at a time, and takes in the answers. Thread-safe.

    Decides under the partition's lock and submits outside it, since an accepted proposal may move
    the high watermark and complete waiting requests.

    Ports: kafka.cluster.Partition (maybeExpandIsr, maybeShrinkIsr, submitAlterPartition)
    """

    def __init__(
        self,
        partition: Partition,
        alter_partition_manager: AlterPartitionManager,
        listener: IsrChangeListener,
    ) -> None:
        self._partition = partition
        self._alter_partition_manager = alter_partition_manager
        self._listener = listener

    def maybe_expand_isr(self, replica: Replica) -> None:
        partition = self._partition
        if not self._can_add(replica.broker_id):
            return
        with partition.leader_isr_update_lock.read():
            if not self._needs_expand_locked(replica):
                return
        with partition.leader_isr_update_lock.write():
            current = partition.state
            if not isinstance(current, CommittedPartitionState) or not self._needs_expand_locked(
                replica
            ):
                return
            pending = PendingExpandIsr(
                replica.broker_id,
                self._proposal_locked(current.isr | {replica.broker_id}),
                current,
            )
            partition.state = pending
        self._submit(pending)

    def maybe_shrink_isr(self, now_ms: int) -> None:
        partition = self._partition
        if partition.state.is_inflight:
            return
        with partition.leader_isr_update_lock.read():
            if not self._out_of_sync_locked(now_ms):
                return
        with partition.leader_isr_update_lock.write():
            current = partition.state
            out_of_sync = self._out_of_sync_locked(now_ms)
            if not isinstance(current, CommittedPartitionState) or not out_of_sync:
                return
            logger.info(
                "Shrinking the ISR of %s from %s by %s, which lag for more than %d ms",
                partition.topic_partition,
                sorted(current.isr),
                sorted(out_of_sync),
                partition.replica_lag_time_max_ms,
            )
            pending = PendingShrinkIsr(
                out_of_sync, self._proposal_locked(current.isr - out_of_sync), current
            )
            partition.state = pending
        self._submit(pending)

    def _can_add(self, broker_id: int) -> bool:
        state = self._partition.state
        return (
            not state.is_inflight
            and broker_id not in state.isr
            and self._partition.is_replica_isr_eligible(broker_id)
        )

    def _needs_expand_locked(self, replica: Replica) -> bool:
        """In sync is who has reached the high watermark and the start of the leader's epoch: below
        that, its records may not be the leader's."""
        partition = self._partition
        log = partition.leader_log_if_local
        end_offset = replica.state.log_end_offset
        return (
            log is not None
            and self._can_add(replica.broker_id)
            and end_offset >= log.high_watermark
            and partition.leader_epoch_start_offset is not None
            and end_offset >= partition.leader_epoch_start_offset
        )

    def _out_of_sync_locked(self, now_ms: int) -> frozenset[int]:
        partition = self._partition
        log = partition.leader_log_if_local
        state = partition.state
        if log is None or state.is_inflight:
            return frozenset()
        leader_end_offset = log.log_end_offset
        return frozenset(
            broker_id
            for broker_id in state.isr
            if broker_id != partition.local_broker_id
            and (
                (replica := partition.remote_replicas.get(broker_id)) is None
                or not replica.state.is_caught_up(
                    leader_end_offset,
                    now_ms=now_ms,
                    max_lag_ms=partition.replica_lag_time_max_ms,
                )
            )
        )

    def _proposal_locked(self, isr: frozenset[int]) -> LeaderAndIsr:
        partition = self._partition
        return LeaderAndIsr(
            leader=partition.local_broker_id,
            # In the order of the assignment, as the controller writes it.
            isr=tuple(
                sorted(
                    isr,
                    key=lambda b: (
                        partition.assignment.replicas.index(b)
                        if b in partition.assignment.replicas
                        else len(partition.assignment.replicas)
                    ),
                )
            ),
            leader_epoch=partition.leader_epoch,
            leader_recovery_state=partition.state.leader_recovery_state,
            partition_epoch=partition.partition_epoch,
        )

    def _submit(self, pending: PendingPartitionState) -> None:
        partition = self._partition
        self._alter_partition_manager.submit(
            TopicIdPartition(partition.topic_id or ZERO_UUID, partition.topic_partition),
            pending.sent_leader_and_isr,
            partition.controller_epoch,
            lambda answer: self._on_answer(pending, answer),
        )

    def _on_answer(self, pending: PendingPartitionState, answer: LeaderAndIsr | KafkaError) -> None:
        partition = self._partition
        high_watermark_incremented = retry = False
        with partition.leader_isr_update_lock.write():
            if partition.state is not pending:
                # A new leader or a new state has come first: the answer is about the past.
                logger.debug("Late answer for the ISR of %s left out", partition.topic_partition)
            elif isinstance(answer, LeaderAndIsr):
                high_watermark_incremented = self._on_accepted_locked(pending, answer)
            else:
                retry = self._on_refused_locked(pending, Errors.for_exception(answer))
        if high_watermark_incremented:
            partition.complete_delayed_requests()
        if retry:
            self._submit(pending)

    def _on_accepted_locked(self, pending: PendingPartitionState, answer: LeaderAndIsr) -> bool:
        """Whether the high watermark has moved: the ISR may be down to the leader."""
        partition = self._partition
        if (
            answer.leader_epoch != partition.leader_epoch
            or answer.partition_epoch < partition.partition_epoch
        ):
            self._listener.mark_failed()
            return False
        partition.state = CommittedPartitionState(
            frozenset(answer.isr), answer.leader_recovery_state
        )
        partition.partition_epoch = answer.partition_epoch
        logger.info(
            "ISR of %s is now %s, partition epoch %d",
            partition.topic_partition,
            list(answer.isr),
            answer.partition_epoch,
        )
        if isinstance(pending, PendingExpandIsr):
            self._listener.mark_isr_expand()
        else:
            self._listener.mark_isr_shrink()
        log = partition.leader_log_if_local
        return log is not None and partition.maybe_increment_leader_hw(log)

    def _on_refused_locked(self, pending: PendingPartitionState, error: Errors) -> bool:
        """Whether to try again."""
        partition = self._partition
        self._listener.mark_failed()
        logger.info(
            "ISR of %s was not changed to %s: %s",
            partition.topic_partition,
            list(pending.sent_leader_and_isr.isr),
            error.name,
        )
        if error in _NOT_APPLIED:
            partition.state = pending.last_committed_state
            return False
        return error not in _OUT_OF_DATE
