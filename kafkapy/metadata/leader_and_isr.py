from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

NO_LEADER = -1
# Tells brokers in UpdateMetadata that the partition's topic is being deleted.
LEADER_DURING_DELETE = -2
INITIAL_LEADER_EPOCH = 0
INITIAL_PARTITION_EPOCH = 0
# As a leader epoch in StopReplica: the replica goes whatever epoch it has.
EPOCH_DURING_DELETE = -2


class LeaderRecoveryState(IntEnum):
    """Whether a partition is recovering from an unclean election.

    Ports: org.apache.kafka.metadata.LeaderRecoveryState
    """

    RECOVERED = 0
    RECOVERING = 1


@dataclass(frozen=True, slots=True)
class LeaderAndIsr:
    """Who leads a partition and who is in sync with it. Immutable.

    `partition_epoch` is the version of the partition's state znode.

    Ports: org.apache.kafka.metadata.LeaderAndIsr
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: int = INITIAL_PARTITION_EPOCH

    @staticmethod
    def initial(leader: int, isr: Sequence[int]) -> LeaderAndIsr:
        """The state of a partition that has never had a leader before."""
        return LeaderAndIsr(leader, INITIAL_LEADER_EPOCH, tuple(isr))

    @staticmethod
    def during_delete(isr: Sequence[int]) -> LeaderAndIsr:
        return LeaderAndIsr.initial(LEADER_DURING_DELETE, isr)

    def with_partition_epoch(self, partition_epoch: int) -> LeaderAndIsr:
        return replace(self, partition_epoch=partition_epoch)

    def new_leader(self, leader: int) -> LeaderAndIsr:
        return self.new_leader_and_isr(leader, self.isr)

    def new_leader_and_isr(self, leader: int, isr: Sequence[int]) -> LeaderAndIsr:
        """Every change of leader, even to none, is a new leader epoch."""
        return replace(self, leader=leader, isr=tuple(isr), leader_epoch=self.leader_epoch + 1)

    def new_epoch(self) -> LeaderAndIsr:
        return self.new_leader_and_isr(self.leader, self.isr)

    @property
    def leader_or_none(self) -> int | None:
        return None if self.leader == NO_LEADER else self.leader


@dataclass(frozen=True, slots=True)
class LeaderIsrAndControllerEpoch:
    """A partition's state as written in its znode, with the epoch of the controller that wrote it.

    Ports: kafka.controller.LeaderIsrAndControllerEpoch
    """

    leader_and_isr: LeaderAndIsr
    controller_epoch: int
