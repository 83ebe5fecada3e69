from kafkapy.metadata.leader_and_isr import (
    LEADER_DURING_DELETE,
    NO_LEADER,
    LeaderAndIsr,
    LeaderRecoveryState,
)


def test_initial_state() -> None:
    initial = LeaderAndIsr.initial(1, [1, 2])

    assert initial == LeaderAndIsr(1, 0, (1, 2), LeaderRecoveryState.RECOVERED, 0)


def test_every_change_of_leader_is_a_new_epoch() -> None:
    before = LeaderAndIsr(1, 5, (1, 2), partition_epoch=9)

    assert before.new_leader(2) == LeaderAndIsr(2, 6, (1, 2), partition_epoch=9)
    assert before.new_leader_and_isr(2, [2]) == LeaderAndIsr(2, 6, (2,), partition_epoch=9)
    assert before.new_epoch() == LeaderAndIsr(1, 6, (1, 2), partition_epoch=9)


def test_partition_epoch_is_no_leader_epoch() -> None:
    assert LeaderAndIsr(1, 5, (1,)).with_partition_epoch(3) == LeaderAndIsr(
        1, 5, (1,), partition_epoch=3
    )


def test_leader_or_none() -> None:
    assert LeaderAndIsr(0, 0, ()).leader_or_none == 0
    assert LeaderAndIsr(NO_LEADER, 0, ()).leader_or_none is None
    assert LeaderAndIsr.during_delete([1]).leader == LEADER_DURING_DELETE
