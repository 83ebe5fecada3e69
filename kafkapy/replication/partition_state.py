"""The ISR and the assignment of a partition, as its leader sees them."""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.metadata.leader_and_isr import LeaderAndIsr, LeaderRecoveryState


@dataclass(frozen=True, slots=True)
class CommittedPartitionState:
    """An ISR that the controller knows of.

    Ports: kafka.cluster.CommittedPartitionState
    """

    isr: frozenset[int]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED

    @property
    def maximal_isr(self) -> frozenset[int]:
        return self.isr

    @property
    def is_inflight(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class PendingExpandIsr:
    """A follower has been proposed for the ISR.

    It counts for the high watermark already: should the proposal be accepted without our knowing,
    nothing was committed that the follower lacks.

    Ports: kafka.cluster.PendingExpandIsr
    """

    new_in_sync_replica_id: int
    sent_leader_and_isr: LeaderAndIsr
    last_committed_state: CommittedPartitionState

    @property
    def isr(self) -> frozenset[int]:
        return self.last_committed_state.isr

    @property
    def maximal_isr(self) -> frozenset[int]:
        return self.isr | {self.new_in_sync_replica_id}

    @property
    def leader_recovery_state(self) -> LeaderRecoveryState:
        return LeaderRecoveryState.RECOVERED

    @property
    def is_inflight(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class PendingShrinkIsr:
    """Followers have been proposed to leave the ISR.

    They go on counting for the high watermark until that is certain.

    Ports: kafka.cluster.PendingShrinkIsr
    """

    out_of_sync_replica_ids: frozenset[int]
    sent_leader_and_isr: LeaderAndIsr
    last_committed_state: CommittedPartitionState

    @property
    def isr(self) -> frozenset[int]:
        return self.last_committed_state.isr

    @property
    def maximal_isr(self) -> frozenset[int]:
        return self.isr

    @property
    def leader_recovery_state(self) -> LeaderRecoveryState:
        return LeaderRecoveryState.RECOVERED

    @property
    def is_inflight(self) -> bool:
        return True


PendingPartitionState = PendingExpandIsr | PendingShrinkIsr
PartitionState = CommittedPartitionState | PendingPartitionState


@dataclass(frozen=True, slots=True)
class AssignmentState:
    """Which brokers hold the partition, and how a reassignment will change that.

    Ports: kafka.cluster.AssignmentState
    """

    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def replication_factor(self) -> int:
        """The factor before the reassignment: replicas that are being added do not count yet."""
        return len([r for r in self.replicas if r not in self.adding_replicas])

    def is_adding_replica(self, replica_id: int) -> bool:
        return replica_id in self.adding_replicas
