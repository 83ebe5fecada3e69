"""Who leads a partition next: pure functions of what the controller knows.

Ports: kafka.controller.Election
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.metadata.leader_and_isr import LeaderAndIsr, LeaderRecoveryState


@dataclass(frozen=True, slots=True)
class OfflinePartitionLeaderElectionStrategy:
    """The leader is gone: the first live replica in sync, or any live one when unclean."""

    allow_unclean: bool = False


@dataclass(frozen=True, slots=True)
class ReassignPartitionLeaderElectionStrategy:
    """The leader is not among the target replicas: the first live target in sync."""


@dataclass(frozen=True, slots=True)
class PreferredReplicaPartitionLeaderElectionStrategy:
    """Back to the first assigned replica, if it is alive and in sync."""


@dataclass(frozen=True, slots=True)
class ControlledShutdownPartitionLeaderElectionStrategy:
    """Away from the brokers that are shutting down."""


PartitionLeaderElectionStrategy = (
    OfflinePartitionLeaderElectionStrategy
    | ReassignPartitionLeaderElectionStrategy
    | PreferredReplicaPartitionLeaderElectionStrategy
    | ControlledShutdownPartitionLeaderElectionStrategy
)


@dataclass(frozen=True, slots=True)
class ElectionResult:
    """The partition's next state, None when nobody can lead, and the replicas to be told.

    Ports: kafka.controller.ElectionResult
    """

    topic_partition: TopicPartition
    leader_and_isr: LeaderAndIsr | None
    live_replicas: tuple[int, ...]
    unclean: bool = False


def offline_partition_leader_election(
    assignment: Sequence[int],
    isr: Collection[int],
    live_replicas: Collection[int],
    *,
    unclean_leader_election_enabled: bool,
) -> int | None:
    in_sync = (r for r in assignment if r in live_replicas and r in isr)
    leader = next(in_sync, None)
    if leader is None and unclean_leader_election_enabled:
        return next((r for r in assignment if r in live_replicas), None)
    return leader


def reassign_partition_leader_election(
    reassignment: Sequence[int], isr: Collection[int], live_replicas: Collection[int]
) -> int | None:
    return next((r for r in reassignment if r in live_replicas and r in isr), None)


def preferred_replica_partition_leader_election(
    assignment: Sequence[int], isr: Collection[int], live_replicas: Collection[int]
) -> int | None:
    preferred = next(iter(assignment), None)
    return preferred if preferred in live_replicas and preferred in isr else None


def controlled_shutdown_partition_leader_election(
    assignment: Sequence[int],
    isr: Collection[int],
    live_replicas: Collection[int],
    *,
    shutting_down_brokers: Collection[int],
) -> int | None:
    return next(
        (
            r
            for r in assignment
            if r in live_replicas and r in isr and r not in shutting_down_brokers
        ),
        None,
    )


def leader_for_offline(
    context: ControllerContext,
    partition: TopicPartition,
    leader_and_isr: LeaderAndIsr | None,
    *,
    unclean_leader_election_enabled: bool,
) -> ElectionResult:
    """`leader_and_isr` is None when the topic's settings could not be read: then nobody leads."""
    assignment = context.partition_replica_assignment(partition)
    live = tuple(r for r in assignment if context.is_replica_online(r, partition))
    if leader_and_isr is None:
        return ElectionResult(partition, None, live)
    isr = leader_and_isr.isr
    leader = offline_partition_leader_election(
        assignment, isr, live, unclean_leader_election_enabled=unclean_leader_election_enabled
    )
    if leader is None:
        return ElectionResult(partition, None, live)
    if leader in isr:
        online_isr = tuple(r for r in isr if context.is_replica_online(r, partition))
        return ElectionResult(
            partition, leader_and_isr.new_leader_and_isr(leader, online_isr), live
        )
    # Records may be lost: the leader says so until it has recovered.
    recovering = replace(
        leader_and_isr.new_leader_and_isr(leader, (leader,)),
        leader_recovery_state=LeaderRecoveryState.RECOVERING,
    )
    return ElectionResult(partition, recovering, live, unclean=True)


def leader_for_reassign(
    context: ControllerContext, partition: TopicPartition, leader_and_isr: LeaderAndIsr
) -> ElectionResult:
    targets = context.partition_full_replica_assignment(partition).target_replicas
    live = [r for r in targets if context.is_replica_online(r, partition)]
    leader = reassign_partition_leader_election(targets, leader_and_isr.isr, live)
    return _with_leader(partition, leader_and_isr, leader, targets)


def leader_for_preferred_replica(
    context: ControllerContext, partition: TopicPartition, leader_and_isr: LeaderAndIsr
) -> ElectionResult:
    assignment = context.partition_replica_assignment(partition)
    live = [r for r in assignment if context.is_replica_online(r, partition)]
    leader = preferred_replica_partition_leader_election(assignment, leader_and_isr.isr, live)
    return _with_leader(partition, leader_and_isr, leader, assignment)


def leader_for_controlled_shutdown(
    context: ControllerContext, partition: TopicPartition, leader_and_isr: LeaderAndIsr
) -> ElectionResult:
    assignment = context.partition_replica_assignment(partition)
    live_or_leaving = tuple(
        r
        for r in assignment
        if context.is_replica_online(r, partition, include_shutting_down_brokers=True)
    )
    leaving = context.shutting_down_broker_ids
    leader = controlled_shutdown_partition_leader_election(
        assignment, leader_and_isr.isr, live_or_leaving, shutting_down_brokers=leaving
    )
    if leader is None:
        return ElectionResult(partition, None, live_or_leaving)
    staying = tuple(r for r in leader_and_isr.isr if r not in leaving)
    return ElectionResult(
        partition, leader_and_isr.new_leader_and_isr(leader, staying), live_or_leaving
    )


def _with_leader(
    partition: TopicPartition,
    leader_and_isr: LeaderAndIsr,
    leader: int | None,
    recipients: tuple[int, ...],
) -> ElectionResult:
    elected = leader_and_isr.new_leader(leader) if leader is not None else None
    return ElectionResult(partition, elected, recipients)
