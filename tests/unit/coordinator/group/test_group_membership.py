import threading
from collections.abc import Callable

import pytest

from kafkapy.common.errors import Errors
from kafkapy.coordinator.group.delayed_heartbeat import DelayedHeartbeat, MemberKey
from kafkapy.coordinator.group.group_results import MemberIdentity
from tests.unit.coordinator.group.conftest import MakeGroups
from tests.unit.coordinator.group.harness import (
    GROUP,
    INITIAL_DELAY_MS,
    RANGE,
    REBALANCE_MS,
    ROUND_ROBIN,
    SESSION_MS,
    GroupHarness,
)

NEW_MEMBER_TIMEOUT_MS = 300_000


# Joining


def test_first_member_waits_for_others_and_leads(groups: GroupHarness) -> None:
    first = groups.join()
    second = groups.join()
    assert (first, second) == ([], [])

    groups.pass_ms(INITIAL_DELAY_MS * 2)

    leader, follower = first[0], second[0]
    assert (leader.error, leader.generation_id) == (Errors.NONE, 1)
    assert leader.leader_id == leader.member_id == follower.leader_id
    assert {m.member_id for m in leader.members} == {leader.member_id, follower.member_id}
    assert follower.members == ()
    assert (leader.protocol_type, leader.protocol_name) == ("consumer", "range")


def test_initial_delay_is_extended_while_members_come_in(groups: GroupHarness) -> None:
    first = groups.join()
    groups.pass_ms(INITIAL_DELAY_MS - 500)
    groups.join()
    groups.pass_ms(500)
    assert first == []

    groups.pass_ms(INITIAL_DELAY_MS)

    assert len(first[0].members) == 2


def test_initial_delay_ends_with_the_rebalance_timeout(groups: GroupHarness) -> None:
    first = groups.join(rebalance_ms=5_000)

    for _ in range(10):
        groups.join(rebalance_ms=5_000)
        groups.pass_ms(500)

    groups.pass_ms(1_000)
    assert first


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_session_timeout_must_be_in_bounds(groups: GroupHarness, session_ms: int) -> None:
    answers = groups.join(session_ms=session_ms)

    assert answers[0].error is Errors.INVALID_SESSION_TIMEOUT
    assert groups.state() == "Dead"


def test_group_must_have_a_name(groups: GroupHarness) -> None:
    assert groups.join(group_id="")[0].error is Errors.INVALID_GROUP_ID
    assert groups.heartbeat("m", 1, group_id="") is Errors.INVALID_GROUP_ID
    assert groups.sync("m", 1, group_id="")[0].error is Errors.INVALID_GROUP_ID
    assert groups.leave("m", group_id="").error is Errors.INVALID_GROUP_ID


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", (RANGE,)), ("consumer", ())])
def test_member_without_protocols_is_refused(
    groups: GroupHarness, protocol_type: str, protocols: tuple
) -> None:
    answers = groups.join(protocol_type=protocol_type, protocols=protocols)

    assert answers[0].error is Errors.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("protocol_type", "protocols"), [("connect", (RANGE,)), ("consumer", (ROUND_ROBIN,))]
)
def test_member_with_other_protocols_is_refused(
    groups: GroupHarness, protocol_type: str, protocols: tuple
) -> None:
    groups.stable_group()

    answers = groups.join(protocol_type=protocol_type, protocols=protocols)

    assert answers[0].error is Errors.INCONSISTENT_GROUP_PROTOCOL
    assert groups.state() == "Stable"


def test_unknown_member_cannot_join(groups: GroupHarness) -> None:
    assert groups.join("nobody")[0].error is Errors.UNKNOWN_MEMBER_ID

    groups.stable_group()

    assert groups.join("nobody")[0].error is Errors.UNKNOWN_MEMBER_ID
    assert groups.state() == "Stable"


def test_new_member_is_told_its_id_before_it_may_join(groups: GroupHarness) -> None:
    told = groups.join(require_known_member_id=True)[0]
    assert told.error is Errors.MEMBER_ID_REQUIRED
    assert told.member_id.startswith("client-")
    assert groups.state() == "Empty"

    answers = groups.join(told.member_id, require_known_member_id=True)
    groups.pass_ms(INITIAL_DELAY_MS)

    assert answers[0].error is Errors.NONE
    assert answers[0].member_id == told.member_id


def test_id_that_is_not_used_in_time_is_forgotten(groups: GroupHarness) -> None:
    told = groups.join(require_known_member_id=True)[0]

    groups.pass_ms(SESSION_MS)

    assert groups.join(told.member_id)[0].error is Errors.UNKNOWN_MEMBER_ID


def test_member_that_joins_while_its_id_times_out_is_kept(groups: GroupHarness) -> None:
    told = groups.join(require_known_member_id=True)[0]
    group = groups.coordinator._group_manager.get_or_create_group(GROUP)

    answers = groups.join(told.member_id)
    # The time-out that had begun, and waited for the group's lock.
    groups.coordinator._rebalances.on_expire_heartbeat(group, told.member_id, is_pending=True)
    groups.pass_ms(INITIAL_DELAY_MS)

    assert [answer.error for answer in answers] == [Errors.NONE]


def test_rebalance_waits_for_members_that_were_told_their_id(groups: GroupHarness) -> None:
    members, _ = groups.stable_group()
    told = groups.join(require_known_member_id=True)[0]
    rejoined = groups.join(members[0])
    assert rejoined == []

    groups.join(told.member_id)

    assert len(rejoined[0].members) == 2


def test_group_takes_no_more_members_than_it_may(make_groups: MakeGroups) -> None:
    groups = make_groups(group_max_size=2)
    members, _ = groups.stable_group(2)

    refused = groups.join()

    assert refused[0].error is Errors.GROUP_MAX_SIZE_REACHED
    assert groups.state() == "Stable"
    assert groups.join(members[1])[0].error is Errors.NONE


def test_full_group_is_full_while_it_prepares_as_well(make_groups: MakeGroups) -> None:
    groups = make_groups(group_max_size=2)
    accepted = [groups.join(), groups.join()]

    refused = groups.join()

    assert refused[0].error is Errors.GROUP_MAX_SIZE_REACHED
    assert accepted == [[], []]


def test_rejoin_of_the_leader_starts_a_rebalance(groups: GroupHarness) -> None:
    (leader, follower), generation = groups.stable_group(2)

    answers = groups.join(leader)

    assert groups.state() == "PreparingRebalance"
    assert groups.heartbeat(follower, generation) is Errors.REBALANCE_IN_PROGRESS
    groups.join(follower)
    assert answers[0].generation_id == generation + 1


def test_rejoin_of_a_follower_that_changes_nothing_is_answered_at_once(
    groups: GroupHarness,
) -> None:
    (_, follower), generation = groups.stable_group(2)

    answers = groups.join(follower)

    assert (answers[0].error, answers[0].generation_id) == (Errors.NONE, generation)
    assert groups.state() == "Stable"


def test_rejoin_of_a_follower_with_other_metadata_starts_a_rebalance(
    groups: GroupHarness,
) -> None:
    (_, follower), _ = groups.stable_group(2)

    groups.join(follower, protocols=(("range", b"changed"),))

    assert groups.state() == "PreparingRebalance"


def test_lost_join_answer_is_given_again_while_completing(groups: GroupHarness) -> None:
    first = groups.join()
    groups.pass_ms(INITIAL_DELAY_MS)

    again = groups.join(first[0].member_id)

    assert again == first
    assert groups.state() == "CompletingRebalance"


def test_members_that_do_not_rejoin_are_removed_after_the_rebalance_timeout(
    groups: GroupHarness,
) -> None:
    (leader, follower), generation = groups.stable_group(2, session_ms=REBALANCE_MS * 2)
    answers = groups.join(follower, protocols=(("range", b"changed"),))

    groups.pass_ms(REBALANCE_MS)

    assert answers[0].leader_id == follower
    assert [m.member_id for m in answers[0].members] == [follower]
    assert groups.heartbeat(leader, generation + 1) is Errors.UNKNOWN_MEMBER_ID


def test_join_of_a_new_member_does_not_wait_forever(groups: GroupHarness) -> None:
    members, generation = groups.stable_group(
        session_ms=NEW_MEMBER_TIMEOUT_MS * 2, rebalance_ms=NEW_MEMBER_TIMEOUT_MS * 2
    )
    answers = groups.join(rebalance_ms=NEW_MEMBER_TIMEOUT_MS * 2)

    groups.pass_ms(NEW_MEMBER_TIMEOUT_MS)

    assert answers[0].error is Errors.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(members[0], generation) is Errors.REBALANCE_IN_PROGRESS


# Syncing


def test_followers_get_their_assignments_with_the_leader(groups: GroupHarness) -> None:
    joins = [groups.join(), groups.join()]
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    leader, follower = (answers[0].member_id for answers in joins)
    waiting = groups.sync(follower, 1)
    assert waiting == []

    answers = groups.sync(leader, 1, assignments={leader: b"1", follower: b"2"})

    assert (answers[0].error, answers[0].assignment) == (Errors.NONE, b"1")
    assert (waiting[0].error, waiting[0].assignment) == (Errors.NONE, b"2")
    assert (waiting[0].protocol_type, waiting[0].protocol_name) == ("consumer", "range")
    assert groups.state() == "Stable"


def test_member_the_leader_forgot_gets_an_empty_assignment(groups: GroupHarness) -> None:
    joins = [groups.join(), groups.join()]
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    leader, follower = (answers[0].member_id for answers in joins)

    groups.sync(leader, 1, assignments={leader: b"1"})

    assert groups.sync(follower, 1)[0].assignment == b""


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"member_id": "nobody"}, Errors.UNKNOWN_MEMBER_ID),
        ({"generation_id": 2}, Errors.ILLEGAL_GENERATION),
        ({"generation_id": 0}, Errors.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, Errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "roundrobin"}, Errors.INCONSISTENT_GROUP_PROTOCOL),
        ({"instance_id": "i"}, Errors.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, Errors.UNKNOWN_MEMBER_ID),
    ],
)
def test_wrong_sync_is_refused_and_changes_nothing(
    groups: GroupHarness, change: dict, error: Errors
) -> None:
    joined = groups.join()
    groups.pass_ms(INITIAL_DELAY_MS)
    arguments = {
        "member_id": joined[0].member_id,
        "generation_id": 1,
        "assignments": {joined[0].member_id: b"wrong"},
        **change,
    }

    answers = groups.sync(**arguments)

    assert answers[0].error is error
    assert groups.state() == "CompletingRebalance"


def test_sync_during_a_rebalance_is_refused(groups: GroupHarness) -> None:
    (leader, follower), generation = groups.stable_group(2)
    groups.join(leader)

    assert groups.sync(follower, generation)[0].error is Errors.REBALANCE_IN_PROGRESS


def test_member_that_joins_while_completing_makes_the_others_start_over(
    groups: GroupHarness,
) -> None:
    joins = [groups.join(), groups.join()]
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    waiting = groups.sync(joins[1][0].member_id, 1)

    groups.join()

    assert waiting[0].error is Errors.REBALANCE_IN_PROGRESS
    assert groups.state() == "PreparingRebalance"


def test_members_that_do_not_sync_are_removed_after_the_rebalance_timeout(
    groups: GroupHarness,
) -> None:
    joins = [groups.join(session_ms=REBALANCE_MS * 2) for _ in range(2)]
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    leader, follower = (answers[0].member_id for answers in joins)
    groups.sync(leader, 1, assignments={leader: b"1", follower: b"2"})

    groups.pass_ms(REBALANCE_MS)

    assert groups.state() == "PreparingRebalance"
    assert groups.heartbeat(follower, 1) is Errors.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(leader, 1) is Errors.REBALANCE_IN_PROGRESS


# Heartbeats


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"member_id": "nobody"}, Errors.UNKNOWN_MEMBER_ID),
        ({"generation_id": 0}, Errors.ILLEGAL_GENERATION),
        ({"generation_id": 2}, Errors.ILLEGAL_GENERATION),
        ({"instance_id": "i"}, Errors.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, Errors.UNKNOWN_MEMBER_ID),
    ],
)
def test_wrong_heartbeat_is_refused_and_keeps_nobody_alive(
    groups: GroupHarness, change: dict, error: Errors
) -> None:
    members, generation = groups.stable_group()
    arguments = {"member_id": members[0], "generation_id": generation, **change}

    for _ in range(2):
        assert groups.heartbeat(**arguments) is error
        groups.pass_ms(SESSION_MS // 2)

    assert groups.state() == "Empty"


def test_heartbeats_keep_a_member_alive(groups: GroupHarness) -> None:
    members, generation = groups.stable_group()

    for _ in range(10):
        groups.pass_ms(SESSION_MS - 500)
        assert groups.heartbeat(members[0], generation) is Errors.NONE

    assert groups.state() == "Stable"


def test_silent_member_is_removed_after_its_session(groups: GroupHarness) -> None:
    (leader, follower), generation = groups.stable_group(2)

    groups.pass_ms(SESSION_MS - 500)
    groups.heartbeat(leader, generation)
    groups.pass_ms(500)

    assert groups.heartbeat(follower, generation) is Errors.UNKNOWN_MEMBER_ID
    assert groups.heartbeat(leader, generation) is Errors.REBALANCE_IN_PROGRESS


class LockTakenFirst:
    """A group's lock that somebody else gets just before whoever asks for it next."""

    def __init__(self, lock: threading.RLock, first: Callable[[], object]) -> None:
        self._lock = lock
        self._first: Callable[[], object] | None = first

    def __enter__(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            first()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_heartbeat_that_is_faster_than_the_timeout_keeps_the_member(groups: GroupHarness) -> None:
    (member,), generation = groups.stable_group()
    group = groups.coordinator._group_manager.get_or_create_group(GROUP)
    answers: list[Errors] = []
    timeout = DelayedHeartbeat(
        groups.coordinator._rebalances, group, member, is_pending=False, timeout_ms=SESSION_MS
    )
    groups.coordinator._rebalances._heartbeats.try_complete_else_watch(
        timeout, (MemberKey(GROUP, member),)
    )
    group.lock = timeout.lock = LockTakenFirst(
        group.lock, lambda: answers.append(groups.heartbeat(member, generation))
    )

    timeout.run()

    assert answers == [Errors.NONE]
    assert groups.heartbeat(member, generation) is Errors.NONE


def test_member_that_waits_for_its_assignment_does_not_time_out(groups: GroupHarness) -> None:
    joins = [groups.join(), groups.join()]
    groups.pass_ms(INITIAL_DELAY_MS * 2)
    leader, follower = (answers[0].member_id for answers in joins)
    waiting = groups.sync(follower, 1)

    for _ in range(4):
        groups.pass_ms(SESSION_MS // 2)
        assert groups.heartbeat(leader, 1) is Errors.NONE

    assert waiting == []
    assert groups.state() == "CompletingRebalance"


# Leaving


def test_leaving_starts_a_rebalance_without_waiting_for_the_session(
    groups: GroupHarness,
) -> None:
    (leader, follower), generation = groups.stable_group(2)

    result = groups.leave(follower)

    assert [error for _, error in result.members] == [Errors.NONE]
    assert groups.heartbeat(leader, generation) is Errors.REBALANCE_IN_PROGRESS
    assert len(groups.join(leader)[0].members) == 1


def test_group_is_empty_after_the_last_has_left(groups: GroupHarness) -> None:
    members, _ = groups.stable_group()

    groups.leave(members[0])

    assert groups.state() == "Empty"


def test_member_that_is_removed_while_it_waits_for_its_assignment_is_told(
    groups: GroupHarness,
) -> None:
    joins = [groups.join(), groups.join()]
    groups.pass_ms(2 * INITIAL_DELAY_MS)
    follower = next(j[0] for j in joins if j[0].member_id != j[0].leader_id)
    waiting = groups.sync(follower.member_id, follower.generation_id)
    assert waiting == []

    groups.leave(follower.member_id)

    assert [answer.error for answer in waiting] == [Errors.UNKNOWN_MEMBER_ID]
    assert groups.state() == "PreparingRebalance"


def test_leaving_completes_a_rebalance_that_waits_for_the_member(groups: GroupHarness) -> None:
    (leader, follower), _ = groups.stable_group(2)
    waiting = groups.join(leader)

    groups.leave(follower)

    assert [m.member_id for m in waiting[0].members] == [leader]


def test_id_that_was_told_can_be_given_back(groups: GroupHarness) -> None:
    told = groups.join(require_known_member_id=True)[0]

    result = groups.leave(told.member_id)

    assert result.members[0][1] is Errors.NONE
    assert groups.join(told.member_id)[0].error is Errors.UNKNOWN_MEMBER_ID


def test_several_members_leave_each_with_an_answer_of_its_own(groups: GroupHarness) -> None:
    (leader, follower), _ = groups.stable_group(2)

    result = groups.leave(follower, "nobody", MemberIdentity(leader, "i"), MemberIdentity("", "i"))

    assert result.error is Errors.NONE
    assert [error for _, error in result.members] == [
        Errors.NONE,
        Errors.UNKNOWN_MEMBER_ID,
        Errors.UNKNOWN_MEMBER_ID,
        Errors.UNKNOWN_MEMBER_ID,
    ]
    assert groups.coordinator.handle_describe_group(GROUP)[1].members[0].member_id == leader


def test_nobody_leaves_an_unknown_group(groups: GroupHarness) -> None:
    result = groups.leave("m", group_id="other")

    assert (result.error, result.members[0][1]) == (Errors.NONE, Errors.UNKNOWN_MEMBER_ID)
