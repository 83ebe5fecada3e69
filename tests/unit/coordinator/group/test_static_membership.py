import pytest

from kafkapy.common.errors import Errors
from kafkapy.coordinator.group.group_results import MemberIdentity
from tests.unit.coordinator.group.harness import (
    INITIAL_DELAY_MS,
    RANGE,
    REBALANCE_MS,
    ROUND_ROBIN,
    SESSION_MS,
    GroupHarness,
)


def static_group(groups: GroupHarness, **fields) -> tuple[str, str]:
    """A stable group of a leader and a follower with the instance ids a and b."""
    joins = [groups.join(instance_id=i, **fields) for i in ("a", "b")]
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    first, second = groups.sync_all([answers[0] for answers in joins])
    return first, second


def members(groups: GroupHarness) -> dict[str | None, str]:
    summary = groups.coordinator.handle_describe_group("group")[1]
    return {m.group_instance_id: m.member_id for m in summary.members}


def test_returning_follower_gets_a_new_id_and_no_rebalance(groups: GroupHarness) -> None:
    leader, follower = static_group(groups)

    answer = groups.join(instance_id="b")[0]

    assert (answer.error, answer.generation_id) == (Errors.NONE, 1)
    assert answer.member_id != follower
    assert answer.leader_id == leader
    assert groups.state() == "Stable"
    assignment = groups.sync(answer.member_id, 1, instance_id="b")[0].assignment
    assert assignment == b"of " + follower.encode()


def test_returning_leader_of_old_does_not_know_that_it_leads(groups: GroupHarness) -> None:
    leader, _ = static_group(groups)

    answer = groups.join(instance_id="a")[0]

    assert answer.leader_id == leader != answer.member_id
    assert answer.members == ()
    assert not answer.skip_assignment
    assert groups.state() == "Stable"


def test_returning_leader_is_told_to_keep_the_assignment(groups: GroupHarness) -> None:
    _, follower = static_group(groups)

    answer = groups.join(instance_id="a", supports_skipping_assignment=True)[0]

    assert answer.leader_id == answer.member_id
    assert answer.skip_assignment
    assert {m.member_id for m in answer.members} == {answer.member_id, follower}
    assert {m.group_instance_id for m in answer.members} == {"a", "b"}


def test_returning_follower_is_not_told_to_skip(groups: GroupHarness) -> None:
    leader, _ = static_group(groups)

    answer = groups.join(instance_id="b", supports_skipping_assignment=True)[0]

    assert (answer.skip_assignment, answer.leader_id, answer.members) == (False, leader, ())


def test_old_id_of_a_returned_instance_is_fenced_everywhere(groups: GroupHarness) -> None:
    _, follower = static_group(groups)
    new_id = groups.join(instance_id="b")[0].member_id

    fenced = Errors.FENCED_INSTANCE_ID
    assert groups.heartbeat(follower, 1, instance_id="b") is fenced
    assert groups.sync(follower, 1, instance_id="b")[0].error is fenced
    assert groups.join(follower, instance_id="b")[0].error is fenced
    assert groups.leave(MemberIdentity(follower, "b")).members[0][1] is fenced
    commit = groups.commit(5, member_id=follower, generation_id=1, instance_id="b")
    assert set(commit.values()) == {fenced}
    txn_commit = groups.txn_commit(5, member_id=follower, generation_id=1, instance_id="b")
    assert set(txn_commit.values()) == {fenced}
    assert groups.state() == "Stable"
    assert members(groups)["b"] == new_id
    assert groups.offsets() == {}


def test_instance_that_joins_twice_fences_the_one_that_waits(groups: GroupHarness) -> None:
    waiting = groups.join(instance_id="a")

    groups.join(instance_id="a")

    assert waiting[0].error is Errors.FENCED_INSTANCE_ID
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    assert list(members(groups)) == ["a"]


def test_instance_that_returns_while_completing_makes_a_rebalance(groups: GroupHarness) -> None:
    joins = [groups.join(instance_id=i) for i in ("a", "b")]
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    waiting = groups.sync(joins[1][0].member_id, 1, instance_id="b")

    groups.join(instance_id="a")

    assert waiting[0].error is Errors.REBALANCE_IN_PROGRESS
    assert groups.state() == "PreparingRebalance"


def test_instance_that_returns_with_another_protocol_makes_a_rebalance(
    groups: GroupHarness,
) -> None:
    static_group(groups, protocols=(RANGE, ROUND_ROBIN))

    groups.join(instance_id="b", protocols=(ROUND_ROBIN,))

    assert groups.state() == "PreparingRebalance"


def test_static_member_survives_a_rebalance_it_misses_until_its_session_ends(
    groups: GroupHarness,
) -> None:
    leader, follower = static_group(groups, session_ms=REBALANCE_MS * 2)
    waiting = groups.join(leader, instance_id="a")

    groups.pass_ms(REBALANCE_MS)
    assert {m.member_id for m in waiting[0].members} == {leader, follower}

    groups.sync(leader, 2, instance_id="a", assignments={leader: b"1", follower: b"2"})
    assert groups.sync(follower, 1, instance_id="b")[0].error is Errors.ILLEGAL_GENERATION


def test_static_member_leaves_only_when_its_session_ends(groups: GroupHarness) -> None:
    static_group(groups)

    groups.pass_ms(SESSION_MS)

    assert members(groups) == {}


@pytest.mark.parametrize("by_member_id", [False, True])
def test_administrator_removes_an_instance(groups: GroupHarness, by_member_id: bool) -> None:
    leader, follower = static_group(groups)

    result = groups.leave(MemberIdentity(follower if by_member_id else "", "b"))

    assert result.members[0][1] is Errors.NONE
    assert members(groups) == {"a": leader}
    assert groups.state() == "PreparingRebalance"


def test_returned_instance_is_stored(groups: GroupHarness) -> None:
    static_group(groups)
    new_id = groups.join(instance_id="b")[0].member_id

    groups.restart()

    assert members(groups)["b"] == new_id


def test_failed_store_of_a_returned_instance_leaves_the_old_one(groups: GroupHarness) -> None:
    leader, follower = static_group(groups)
    # Another broker leads the partition, which the coordinator has not been told yet.
    groups.replicas.leader_and_isr(
        groups.replicas.replica_manager.get_partition(("__consumer_offsets", 0)).topic_partition,
        leader=2,
        leader_epoch=1,
        replicas=(1, 2),
    )

    answer = groups.join(instance_id="b")[0]

    assert answer.error is Errors.NOT_COORDINATOR
    assert members(groups) == {"a": leader, "b": follower}
    assert groups.heartbeat(follower, 1, instance_id="b") is Errors.NONE


def test_instance_that_comes_back_before_it_had_its_assignment_starts_no_rebalance(
    groups: GroupHarness,
) -> None:
    joins = [groups.join(instance_id=name) for name in ("a", "b")]
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    leader, follower = joins[0][0].member_id, joins[1][0].member_id
    groups.sync(leader, 1, assignments={leader: b"1", follower: b"2"}, instance_id="a")

    (back,) = groups.join(instance_id="b")
    (synced,) = groups.sync(back.member_id, back.generation_id, instance_id="b")
    assert synced.assignment == b"2"
    for _ in range(REBALANCE_MS // 5_000 + 1):
        groups.pass_ms(5_000)
        groups.heartbeat(leader, 1, instance_id="a")
        groups.heartbeat(back.member_id, 1, instance_id="b")

    assert groups.state() == "Stable"
