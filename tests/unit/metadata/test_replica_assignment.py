from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.metadata.replica_assignment import ReplicaAssignment


def test_reassignment_puts_the_target_first() -> None:
    moving = ReplicaAssignment.of([1, 2, 3]).reassign_to([5, 3])

    assert moving == ReplicaAssignment(
        replicas=(5, 3, 1, 2), adding_replicas=(5,), removing_replicas=(1, 2)
    )
    assert moving.is_being_reassigned
    assert moving.target_replicas == (5, 3)
    assert moving.origin_replicas == (3, 1, 2)


def test_reassignment_during_another_starts_from_the_origin() -> None:
    moving = ReplicaAssignment.of([1, 2]).reassign_to([3, 4])

    assert moving.reassign_to([5]) == ReplicaAssignment((5, 1, 2), (5,), (1, 2))


def test_assignment_at_rest() -> None:
    assert not ReplicaAssignment.of([1, 2]).is_being_reassigned


def test_removed_replica_is_gone_everywhere() -> None:
    moving = ReplicaAssignment((1, 2, 3), adding_replicas=(3,), removing_replicas=(1,))

    assert moving.remove_replica(1) == ReplicaAssignment((2, 3), adding_replicas=(3,))
    assert moving.remove_replica(3) == ReplicaAssignment((1, 2), removing_replicas=(1,))


_REPLICAS = st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True)


@settings(deadline=None, derandomize=True)
@given(_REPLICAS, _REPLICAS)
def test_reassignment_holds_old_and_new(origin: list[int], target: list[int]) -> None:
    moving = ReplicaAssignment.of(origin).reassign_to(target)

    assert moving.target_replicas == tuple(target)
    assert set(moving.origin_replicas) == set(origin)
    assert set(moving.replicas) == set(origin) | set(target)
