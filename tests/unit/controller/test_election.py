import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.controller.election import (
    controlled_shutdown_partition_leader_election,
    leader_for_controlled_shutdown,
    leader_for_offline,
    leader_for_preferred_replica,
    leader_for_reassign,
    offline_partition_leader_election,
    preferred_replica_partition_leader_election,
    reassign_partition_leader_election,
)
from kafkapy.metadata.leader_and_isr import LeaderAndIsr, LeaderRecoveryState
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from tests.unit.controller.builders import context_of

PARTITION = TopicPartition("t", 0)


def context(live: list[int], replicas: tuple[int, ...] = (1, 2, 3)) -> ControllerContext:
    return context_of({PARTITION: replicas}, live)


def state(leader: int, *isr: int) -> LeaderAndIsr:
    return LeaderAndIsr(leader=leader, leader_epoch=7, isr=isr, partition_epoch=4)


@pytest.mark.parametrize(
    ("assignment", "isr", "live", "unclean", "leader"),
    [
        ([2, 4], [2, 4], {4}, False, 4),
        ([2, 4], [4], {2, 4}, False, 4),
        ([2, 4], [2], {4}, False, None),
        ([2, 4], [2], {4}, True, 4),
        ([2, 4], [2], {2, 4}, True, 2),
        ([2, 4], [2], set(), True, None),
        ([], [2], {2}, True, None),
    ],
)
def test_offline_election_takes_first_live_replica_in_sync_and_others_only_when_unclean(
    assignment: list[int], isr: list[int], live: set[int], unclean: bool, leader: int | None
) -> None:
    elected = offline_partition_leader_election(
        assignment, isr, live, unclean_leader_election_enabled=unclean
    )

    assert elected == leader


@pytest.mark.parametrize(
    ("targets", "isr", "live", "leader"),
    [([2, 4], [2, 4], {4}, 4), ([2, 4], [2], {4}, None), ([2, 4], [], {2, 4}, None)],
)
def test_reassign_election_takes_first_live_target_in_sync(
    targets: list[int], isr: list[int], live: set[int], leader: int | None
) -> None:
    assert reassign_partition_leader_election(targets, isr, live) == leader


@pytest.mark.parametrize(
    ("assignment", "isr", "live", "leader"),
    [
        ([2, 4], [2, 4], {2, 4}, 2),
        ([2, 4], [4], {2, 4}, None),
        ([2, 4], [2, 4], {4}, None),
        ([], [], set(), None),
    ],
)
def test_preferred_election_takes_the_first_replica_or_nobody(
    assignment: list[int], isr: list[int], live: set[int], leader: int | None
) -> None:
    assert preferred_replica_partition_leader_election(assignment, isr, live) == leader


@pytest.mark.parametrize(
    ("assignment", "isr", "live", "leaving", "leader"),
    [
        ([2, 4], [2, 4], {2, 4}, {2}, 4),
        ([2, 4], [2], {2, 4}, {2}, None),
        ([2, 4], [2, 4], {2, 4}, {2, 4}, None),
        ([2, 4], [2, 4], {2}, {2}, None),
    ],
)
def test_controlled_shutdown_election_avoids_leaving_brokers(
    assignment: list[int], isr: list[int], live: set[int], leaving: set[int], leader: int | None
) -> None:
    elected = controlled_shutdown_partition_leader_election(
        assignment, isr, live, shutting_down_brokers=leaving
    )

    assert elected == leader


def test_clean_election_raises_leader_epoch_and_drops_dead_replicas_from_isr() -> None:
    result = leader_for_offline(
        context(live=[2, 3]), PARTITION, state(1, 1, 2, 3), unclean_leader_election_enabled=True
    )

    assert result.leader_and_isr == LeaderAndIsr(
        leader=2, leader_epoch=8, isr=(2, 3), partition_epoch=4
    )
    assert result.live_replicas == (2, 3)
    assert not result.unclean


def test_unclean_election_leaves_only_the_leader_in_sync_and_recovering() -> None:
    result = leader_for_offline(
        context(live=[3]), PARTITION, state(1, 1, 2), unclean_leader_election_enabled=True
    )

    assert result.unclean
    assert result.leader_and_isr is not None
    assert result.leader_and_isr.leader == 3
    assert result.leader_and_isr.isr == (3,)
    assert result.leader_and_isr.leader_recovery_state is LeaderRecoveryState.RECOVERING


def test_offline_election_without_known_state_elects_nobody() -> None:
    result = leader_for_offline(
        context(live=[1]), PARTITION, None, unclean_leader_election_enabled=True
    )

    assert result.leader_and_isr is None
    assert result.live_replicas == (1,)


def test_replica_on_offline_directory_is_not_elected() -> None:
    given = context(live=[1, 2, 3])
    given.replicas_on_offline_dirs[1] = frozenset({PARTITION})

    result = leader_for_offline(
        given, PARTITION, state(1, 1, 2), unclean_leader_election_enabled=False
    )

    assert result.leader_and_isr is not None
    assert result.leader_and_isr.leader == 2
    assert result.leader_and_isr.isr == (2,)


def test_preferred_election_keeps_isr_and_tells_all_replicas() -> None:
    result = leader_for_preferred_replica(context(live=[1, 2]), PARTITION, state(2, 1, 2))

    assert result.leader_and_isr == state(2, 1, 2).new_leader(1)
    assert result.live_replicas == (1, 2, 3)


def test_reassign_election_looks_at_target_replicas_only() -> None:
    given = context(live=[1, 2, 3, 4])
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((4, 3))
    given.update_partition_full_replica_assignment(PARTITION, moving)

    result = leader_for_reassign(given, PARTITION, state(1, 1, 2, 3))

    assert result.leader_and_isr == state(1, 1, 2, 3).new_leader(3)
    assert result.live_replicas == (4, 3)


def test_controlled_shutdown_takes_the_leaving_broker_out_of_isr_and_still_tells_it() -> None:
    given = context(live=[1, 2, 3])
    given.shutting_down_broker_ids.add(1)

    result = leader_for_controlled_shutdown(given, PARTITION, state(1, 1, 2, 3))

    assert result.leader_and_isr == state(1, 1, 2, 3).new_leader_and_isr(2, (2, 3))
    assert result.live_replicas == (1, 2, 3)


def test_controlled_shutdown_of_the_last_replica_in_sync_elects_nobody() -> None:
    given = context(live=[1, 2, 3])
    given.shutting_down_broker_ids.add(1)

    assert leader_for_controlled_shutdown(given, PARTITION, state(1, 1)).leader_and_isr is None
