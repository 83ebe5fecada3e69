import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_metadata import GroupMetadata
from kafkapy.coordinator.group.group_results import JoinGroupResult, SyncGroupResult
from kafkapy.coordinator.group.group_state import (
    VALID_PREVIOUS_STATES,
    GroupState,
    IllegalGroupStateError,
)
from kafkapy.coordinator.group.member_metadata import MemberMetadata
from kafkapy.coordinator.group.offset_and_metadata import OffsetAndMetadata
from tests.helpers.mock_time import MockTime
from tests.unit.coordinator.group.harness import RANGE, ROUND_ROBIN, subscription

LEGAL = {
    (GroupState.EMPTY, GroupState.PREPARING_REBALANCE),
    (GroupState.STABLE, GroupState.PREPARING_REBALANCE),
    (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE),
    (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE),
    (GroupState.COMPLETING_REBALANCE, GroupState.STABLE),
    (GroupState.PREPARING_REBALANCE, GroupState.EMPTY),
    *((state, GroupState.DEAD) for state in GroupState),
}
STEPS = [(source, target) for source in GroupState for target in GroupState]


def member(member_id: str, *protocols: tuple[str, bytes], **fields) -> MemberMetadata:
    return MemberMetadata(
        **{
            "member_id": member_id,
            "group_instance_id": None,
            "client_id": "client",
            "client_host": "/127.0.0.1",
            "rebalance_timeout_ms": 60_000,
            "session_timeout_ms": 10_000,
            "protocol_type": "consumer",
            "supported_protocols": protocols or (RANGE,),
            **fields,
        }
    )


@pytest.fixture
def group(time: MockTime) -> GroupMetadata:
    return GroupMetadata("g", time)


def group_in(state: GroupState, time: MockTime) -> GroupMetadata:
    return GroupMetadata("g", time, state)


@pytest.mark.parametrize(("source", "target"), STEPS)
def test_table_has_just_the_steps_of_the_protocol(source: GroupState, target: GroupState) -> None:
    assert (source in VALID_PREVIOUS_STATES[target]) == ((source, target) in LEGAL)


@pytest.mark.parametrize(("source", "target"), [step for step in STEPS if step in LEGAL])
def test_legal_step_changes_the_state_and_its_time(
    time: MockTime, source: GroupState, target: GroupState
) -> None:
    group = group_in(source, time)
    time.sleep(5)

    group.transition_to(target)

    assert group.state is target
    assert group.current_state_timestamp == time.milliseconds()


@pytest.mark.parametrize(("source", "target"), [step for step in STEPS if step not in LEGAL])
def test_illegal_step_raises_and_changes_nothing(
    time: MockTime, source: GroupState, target: GroupState
) -> None:
    group = group_in(source, time)
    before = group.current_state_timestamp
    time.sleep(5)

    with pytest.raises(IllegalGroupStateError):
        group.transition_to(target)

    assert group.state is source
    assert group.current_state_timestamp == before


@pytest.mark.parametrize("state", [GroupState.EMPTY, GroupState.STABLE, GroupState.DEAD])
def test_next_generation_needs_a_rebalance(time: MockTime, state: GroupState) -> None:
    group = group_in(state, time)
    group.add(member("a"))

    with pytest.raises(IllegalGroupStateError):
        group.init_next_generation()

    assert (group.state, group.generation_id, group.protocol_name) == (state, 0, None)


def test_next_generation_selects_the_protocol_and_reads_the_subscriptions(
    group: GroupMetadata,
) -> None:
    group.transition_to(GroupState.PREPARING_REBALANCE)
    group.add(member("a", ("range", subscription("x", "y"))))
    group.add(member("b", ("range", subscription("z"))))

    group.init_next_generation()

    assert group.is_in(GroupState.COMPLETING_REBALANCE)
    assert (group.generation_id, group.protocol_name) == (1, "range")
    assert group.subscribed_topics == {"x", "y", "z"}
    assert not group.is_subscribed_to_topic("w")


def test_unreadable_subscription_counts_as_subscribed_to_everything(
    group: GroupMetadata,
) -> None:
    group.transition_to(GroupState.PREPARING_REBALANCE)
    group.add(member("a", ("range", b"\x00\x00\x7f")))

    group.init_next_generation()

    assert group.subscribed_topics is None
    assert group.is_subscribed_to_topic("anything")


def test_next_generation_without_members_is_empty(group: GroupMetadata) -> None:
    group.transition_to(GroupState.PREPARING_REBALANCE)

    group.init_next_generation()

    assert group.is_in(GroupState.EMPTY)
    assert (group.generation_id, group.protocol_name) == (1, None)


def test_next_generation_may_commit_in_another_way(group: GroupMetadata) -> None:
    group.offsets.prepare_commit({TopicPartition("t", 0): OffsetAndMetadata(1)})
    group.transition_to(GroupState.PREPARING_REBALANCE)
    group.init_next_generation()

    group.offsets.prepare_transactional_commit(7, {TopicPartition("t", 0): OffsetAndMetadata(2)})

    assert group.offsets.has_received_consistent_commits


def test_protocol_is_the_favourite_among_those_all_members_support(
    group: GroupMetadata,
) -> None:
    group.add(member("a", RANGE, ROUND_ROBIN))
    group.add(member("b", ROUND_ROBIN, RANGE))
    group.add(member("c", ROUND_ROBIN, RANGE))
    assert group.select_protocol() == "roundrobin"

    group.add(member("d", RANGE))

    assert group.select_protocol() == "range"


def test_protocols_must_have_one_in_common_with_all_members(group: GroupMetadata) -> None:
    assert group.supports_protocols("consumer", ["x"])
    assert not group.supports_protocols("", ["x"])
    assert not group.supports_protocols("consumer", [])

    group.transition_to(GroupState.PREPARING_REBALANCE)
    group.add(member("a", RANGE, ROUND_ROBIN))
    group.add(member("b", RANGE))

    assert group.supports_protocols("consumer", ["x", "range"])
    assert not group.supports_protocols("consumer", ["roundrobin"])
    assert not group.supports_protocols("connect", ["range"])


def test_member_with_foreign_protocols_cannot_be_added(group: GroupMetadata) -> None:
    group.add(member("a", RANGE))

    with pytest.raises(IllegalGroupStateError):
        group.add(member("b", ROUND_ROBIN))

    assert group.member_ids == ["a"]


def test_first_member_leads_and_the_next_one_follows_it(group: GroupMetadata) -> None:
    for member_id in ("a", "b", "c"):
        group.add(member(member_id))

    group.remove("a")

    assert group.leader_id == "b"
    group.remove("b")
    group.remove("c")
    assert group.leader_id is None


def test_leader_that_did_not_rejoin_is_replaced_by_one_who_did(group: GroupMetadata) -> None:
    group.add(member("a"))
    group.add(member("b"), lambda _: None)

    assert group.maybe_elect_new_joined_leader()

    assert group.leader_id == "b"


def test_nobody_leads_when_nobody_has_rejoined(group: GroupMetadata) -> None:
    group.add(member("a"))

    assert not group.maybe_elect_new_joined_leader()


def test_joins_are_complete_when_no_member_and_no_id_is_outstanding(
    group: GroupMetadata,
) -> None:
    first, second = member("a"), member("b")
    group.add(first, lambda _: None)
    group.add(second)
    group.add_pending_member("c")
    assert not group.has_all_members_joined

    group.update_member(
        second,
        protocols=(RANGE,),
        rebalance_timeout_ms=1,
        session_timeout_ms=1,
        callback=lambda _: None,
    )
    assert not group.has_all_members_joined

    group.remove("c")
    assert group.has_all_members_joined
    assert group.num_awaiting_join == 2


def test_callback_is_called_once(group: GroupMetadata) -> None:
    answers: list[JoinGroupResult] = []
    joined = member("a")
    group.add(joined, answers.append)
    result = JoinGroupResult("a", Errors.NONE)

    group.maybe_invoke_join_callback(joined, result)
    group.maybe_invoke_join_callback(joined, result)

    assert answers == [result]
    assert group.num_awaiting_join == 0


def test_replaced_static_member_keeps_its_place_and_fences_the_old_one(
    group: GroupMetadata,
) -> None:
    joins: list[JoinGroupResult] = []
    syncs: list[SyncGroupResult] = []
    static = member("old", group_instance_id="i", awaiting_sync_callback=syncs.append)
    group.add(static, joins.append)

    group.replace_static_member("i", "old", "new")

    assert [answer.error for answer in joins] == [Errors.FENCED_INSTANCE_ID]
    assert [answer.error for answer in syncs] == [Errors.FENCED_INSTANCE_ID]
    assert group.current_static_member_id("i") == "new"
    assert (group.member_ids, group.leader_id) == (["new"], "new")


def test_two_members_cannot_have_one_instance_id(group: GroupMetadata) -> None:
    group.add(member("a", group_instance_id="i"))

    with pytest.raises(IllegalGroupStateError):
        group.add(member("b", group_instance_id="i"))

    assert group.member_ids == ["a"]
    assert group.current_static_member_id("i") == "a"


def test_summary_shows_metadata_only_of_a_stable_group(group: GroupMetadata) -> None:
    group.transition_to(GroupState.PREPARING_REBALANCE)
    group.add(member("a", assignment=b"mine"))
    group.init_next_generation()

    completing = group.summary()
    group.transition_to(GroupState.STABLE)
    stable = group.summary()

    assert (completing.state, completing.protocol) == ("CompletingRebalance", "")
    assert (completing.members[0].metadata, completing.members[0].assignment) == (b"", b"")
    assert (stable.state, stable.protocol) == ("Stable", "range")
    assert (stable.members[0].metadata, stable.members[0].assignment) == (RANGE[1], b"mine")
