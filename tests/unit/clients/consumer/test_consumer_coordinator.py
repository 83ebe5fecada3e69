"""Joining, leading, rebalancing and leaving, and every error on the way."""

import pytest

from kafkapy.clients.client_errors import WakeupError
from kafkapy.clients.consumer.assignors import consumer_protocol
from kafkapy.clients.consumer.assignors.cooperative_sticky_assignor import (
    CooperativeStickyAssignor,
)
from kafkapy.clients.consumer.group_membership import MemberState
from kafkapy.clients.consumer.heartbeat_thread import HeartbeatThread
from kafkapy.common.errors import (
    Errors,
    FencedInstanceIdError,
    GroupAuthorizationError,
    KafkaError,
)
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.common.protocol.messages.join_group import JoinGroupRequest
from kafkapy.common.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.common.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.common.protocol.messages.sync_group import SyncGroupRequest
from tests.unit.clients.consumer.group import (
    COORDINATOR,
    GROUP_ID,
    MEMBER_ID,
    Group,
    committed,
    found,
    heartbeat,
    synced,
)
from tests.unit.clients.consumer.parts import TOPIC, TP0, TP1, metadata_response


@pytest.fixture
def group() -> Group:
    group = Group()
    group.subscribe()
    return group


def requests_of(group: Group, kind: type) -> list[object]:
    return [request for request in group.mock.requests if isinstance(request, kind)]


# Finding the coordinator


def test_the_coordinator_is_found_and_gets_a_connection_of_its_own(group: Group) -> None:
    group.find_coordinator()

    assert group.coordinator.finder.coordinator == COORDINATOR
    (request,) = requests_of(group, FindCoordinatorRequest)
    assert isinstance(request, FindCoordinatorRequest)
    assert request.coordinator_keys == [GROUP_ID]


def test_a_coordinator_that_is_not_there_yet_is_looked_for_again(group: Group) -> None:
    group.mock.prepare_response(found(Errors.COORDINATOR_NOT_AVAILABLE))
    group.mock.prepare_metadata_update(metadata_response())
    group.mock.prepare_response(found())

    assert group.coordinator.ensure_coordinator_ready(group.parts.deadline())


def test_a_group_one_may_not_join_is_an_error(group: Group) -> None:
    group.mock.prepare_response(found(Errors.GROUP_AUTHORIZATION_FAILED))

    with pytest.raises(GroupAuthorizationError, match=GROUP_ID):
        group.coordinator.ensure_coordinator_ready(group.parts.deadline())


def test_no_coordinator_in_time_is_no_error(group: Group) -> None:
    assert not group.coordinator.ensure_coordinator_ready(group.parts.deadline(100))


def test_a_coordinator_that_is_disconnected_is_unknown(group: Group) -> None:
    group.find_coordinator()

    group.mock.back_off(COORDINATOR, 1_000)

    assert group.coordinator.finder.is_unknown()


# Joining


def test_a_follower_gets_its_assignment(group: Group) -> None:
    group.become_member(TP0)

    assert group.parts.subscriptions.assigned_partitions == {TP0}
    assert group.listener.events == [("assigned", {TP0})]
    assert group.coordinator.state is MemberState.STABLE
    assert group.coordinator.group_metadata.generation_id == 1
    assert group.coordinator.group_metadata.member_id == MEMBER_ID
    assert not group.coordinator.rejoin_needed_or_pending()
    (sync,) = requests_of(group, SyncGroupRequest)
    assert isinstance(sync, SyncGroupRequest) and sync.assignments == []


def test_a_member_without_id_comes_back_with_the_one_it_was_given(group: Group) -> None:
    group.find_coordinator()
    group.mock.prepare_response(group.joined(-1, error=Errors.MEMBER_ID_REQUIRED))
    group.mock.prepare_response(group.joined(1))
    group.mock.prepare_response(synced(TP0))

    assert group.join()

    joins = requests_of(group, JoinGroupRequest)
    assert [join.member_id for join in joins] == ["", MEMBER_ID]  # type: ignore[attr-defined]


def test_the_leader_assigns_to_everybody(group: Group) -> None:
    group.find_coordinator()
    topics = [TOPIC]
    group.mock.prepare_response(group.joined_as_leader({MEMBER_ID: topics, "other": topics}))
    group.mock.prepare_response(synced(TP0))

    assert group.join()

    (sync,) = requests_of(group, SyncGroupRequest)
    assert isinstance(sync, SyncGroupRequest)
    assigned = {
        a.member_id: consumer_protocol.deserialize_assignment(a.assignment).partitions
        for a in sync.assignments
    }
    assert assigned == {MEMBER_ID: [TP0], "other": [TP1]}


def test_the_leader_follows_the_topics_of_the_others(group: Group) -> None:
    group.find_coordinator()
    members = {MEMBER_ID: [TOPIC], "other": ["more"]}
    group.mock.prepare_response(group.joined_as_leader(members))
    group.mock.prepare_metadata_update(metadata_response({TOPIC: 2, "more": 1}))
    group.mock.prepare_response(synced(TP0, TP1))
    assert group.join()
    assert group.parts.subscriptions.metadata_topics == {TOPIC, "more"}
    assert not group.coordinator.rejoin_needed_or_pending()

    group.parts.update_metadata({TOPIC: 2, "more": 5})
    group.coordinator._maybe_update_metadata_view()

    assert group.coordinator.rejoin_needed_or_pending()


def test_a_static_leader_that_returns_leaves_the_assignment_alone(group: Group) -> None:
    group.find_coordinator()
    group.mock.prepare_response(group.joined_as_leader({MEMBER_ID: [TOPIC]}, skip_assignment=True))
    group.mock.prepare_response(synced(TP1))

    assert group.join()

    (sync,) = requests_of(group, SyncGroupRequest)
    assert isinstance(sync, SyncGroupRequest) and sync.assignments == []
    assert group.parts.subscriptions.assigned_partitions == {TP1}


def test_a_join_that_takes_long_goes_on_with_the_next_poll(group: Group) -> None:
    group.find_coordinator()
    assert not group.join(timeout_ms=50)
    assert group.coordinator.rejoin_needed_or_pending()

    group.mock.respond(group.joined(), matcher=lambda r: isinstance(r, JoinGroupRequest))
    group.mock.prepare_response(synced(TP0))
    assert group.join()

    assert len(requests_of(group, JoinGroupRequest)) == 1


@pytest.mark.parametrize(
    "error",
    [Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.UNKNOWN_MEMBER_ID, Errors.REBALANCE_IN_PROGRESS],
)
def test_joining_is_tried_again(group: Group, error: Errors) -> None:
    group.find_coordinator()
    group.mock.prepare_response(group.joined(error=error))
    group.mock.prepare_response(group.joined(3))
    group.mock.prepare_response(synced(TP0))

    assert group.join()

    assert group.coordinator.generation.generation_id == 3


@pytest.mark.parametrize("error", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE])
def test_joining_looks_for_a_coordinator_that_has_moved(group: Group, error: Errors) -> None:
    group.find_coordinator()
    group.mock.prepare_response(group.joined(error=error))
    group.mock.prepare_response(found())
    group.mock.prepare_response(group.joined(2))
    group.mock.prepare_response(synced(TP0))

    assert group.join()

    assert len(requests_of(group, FindCoordinatorRequest)) == 2


@pytest.mark.parametrize(
    "error",
    [
        Errors.INCONSISTENT_GROUP_PROTOCOL,
        Errors.INVALID_SESSION_TIMEOUT,
        Errors.INVALID_GROUP_ID,
        Errors.GROUP_AUTHORIZATION_FAILED,
        Errors.GROUP_MAX_SIZE_REACHED,
        Errors.FENCED_INSTANCE_ID,
    ],
)
def test_some_refusals_are_final(group: Group, error: Errors) -> None:
    group.find_coordinator()
    group.mock.prepare_response(group.joined(error=error))

    assert error.exception_class is not None
    with pytest.raises(error.exception_class, match=GROUP_ID):
        group.join()


@pytest.mark.parametrize(
    ("error", "keeps_member_id"),
    [
        (Errors.REBALANCE_IN_PROGRESS, True),
        (Errors.ILLEGAL_GENERATION, True),
        (Errors.UNKNOWN_MEMBER_ID, False),
    ],
)
def test_a_sync_that_comes_too_late_joins_again(
    group: Group, error: Errors, keeps_member_id: bool
) -> None:
    group.find_coordinator()
    group.mock.prepare_response(group.joined(1))
    group.mock.prepare_response(synced(error=error))
    group.mock.prepare_response(group.joined(2))
    group.mock.prepare_response(synced(TP1))

    assert group.join()

    second = requests_of(group, JoinGroupRequest)[1]
    assert isinstance(second, JoinGroupRequest)
    assert second.member_id == (MEMBER_ID if keeps_member_id else "")
    assert group.parts.subscriptions.assigned_partitions == {TP1}


def test_an_assignment_of_another_subscription_is_not_taken(group: Group) -> None:
    group.find_coordinator()
    assert not group.join(timeout_ms=20)
    group.parts.subscriptions.subscribe(["other"], group.listener)

    group.mock.respond(group.joined(), matcher=lambda r: isinstance(r, JoinGroupRequest))
    group.mock.prepare_response(synced(TP0))
    group.join(timeout_ms=20)

    assert group.parts.subscriptions.assigned_partitions == frozenset()
    assert group.coordinator.rejoin_needed_or_pending()


# Rebalances


def test_an_eager_member_gives_everything_up_first(group: Group) -> None:
    group.become_member(TP0)
    group.coordinator.request_rejoin("test")

    group.become_member(TP1, generation=2)

    assert group.listener.events == [
        ("assigned", {TP0}),
        ("revoked", {TP0}),
        ("assigned", {TP1}),
    ]


def test_a_cooperative_member_gives_up_what_has_gone_and_joins_again() -> None:
    group = Group(CooperativeStickyAssignor())
    group.subscribe()
    group.become_member(TP0, TP1)
    group.coordinator.request_rejoin("test")

    group.mock.prepare_response(group.joined(2))
    group.mock.prepare_response(synced(TP1))
    group.mock.prepare_response(group.joined(3))
    group.mock.prepare_response(synced(TP1))
    assert group.join()

    assert group.listener.events == [
        ("assigned", {TP0, TP1}),
        ("revoked", {TP0}),
        ("assigned", set()),
        ("assigned", set()),
    ]
    last = requests_of(group, JoinGroupRequest)[-1]
    assert isinstance(last, JoinGroupRequest)
    sent = consumer_protocol.deserialize_subscription(last.protocols[0].metadata)
    assert sent.owned_partitions == (TP1,)
    assert sent.generation_id == 2


def test_a_cooperative_member_gives_up_topics_it_no_longer_wants_before_joining() -> None:
    group = Group(CooperativeStickyAssignor())
    group.subscribe()
    group.become_member(TP0)
    group.parts.subscriptions.subscribe(["other"], group.listener)

    assert not group.join(timeout_ms=20)

    assert group.listener.events[-1] == ("revoked", {TP0})
    assert group.parts.subscriptions.assigned_partitions == frozenset()


def test_a_lost_membership_loses_its_partitions(group: Group) -> None:
    group.become_member(TP0)
    group.coordinator.reset_state_on_error(Errors.UNKNOWN_MEMBER_ID, keep_member_id=False)

    group.become_member(TP0, generation=5)

    assert group.listener.events[1:] == [("lost", {TP0}), ("assigned", {TP0})]


def test_a_changed_subscription_needs_a_rebalance(group: Group) -> None:
    group.become_member(TP0)

    group.parts.subscriptions.subscribe([TOPIC, "more"], group.listener)

    assert group.coordinator.rejoin_needed_or_pending()


def test_a_listener_that_fails_raises_once_the_rebalance_is_through(group: Group) -> None:
    group.find_coordinator()
    group.listener.failure = ValueError("bad listener")
    group.mock.prepare_response(group.joined())
    group.mock.prepare_response(synced(TP0))

    with pytest.raises(KafkaError, match="bad listener"):
        group.join()

    assert group.parts.subscriptions.assigned_partitions == {TP0}
    assert group.join()


def test_a_wakeup_in_a_listener_does_not_lose_the_assignment(group: Group) -> None:
    group.find_coordinator()
    group.listener.failure = WakeupError()
    group.mock.prepare_response(group.joined())
    group.mock.prepare_response(synced(TP0))
    with pytest.raises(WakeupError):
        group.join()

    assert group.join()

    assert group.parts.subscriptions.assigned_partitions == {TP0}
    assert len(requests_of(group, JoinGroupRequest)) == 1


def test_positions_are_committed_before_partitions_are_given_up() -> None:
    group = Group(auto_commit_interval_ms=60_000)
    group.subscribe()
    group.become_member(TP0)
    group.parts.seek(TP0, 42)
    group.coordinator.request_rejoin("test")

    assert not group.join(timeout_ms=20)
    # Nothing is handed out between the commit and the revocation.
    assert not group.parts.subscriptions.is_fetchable(TP0)
    assert group.listener.events == [("assigned", {TP0})]
    group.mock.respond(committed(), matcher=lambda r: isinstance(r, OffsetCommitRequest))
    group.become_member(TP1, generation=2)

    (commit,) = requests_of(group, OffsetCommitRequest)
    assert isinstance(commit, OffsetCommitRequest)
    assert commit.topics[0].partitions[0].committed_offset == 42
    assert commit.generation_id_or_member_epoch == 1
    assert group.listener.events[1:] == [("revoked", {TP0}), ("assigned", {TP1})]


# Heartbeats


@pytest.mark.parametrize(
    "error", [Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION, Errors.FENCED_INSTANCE_ID]
)
def test_a_heartbeat_may_find_the_membership_gone(group: Group, error: Errors) -> None:
    group.become_member(TP0)
    group.mock.prepare_response(heartbeat(error))

    future = group.coordinator.send_heartbeat()
    group.parts.client.poll_future(future, group.parts.deadline())

    assert future.failed
    assert group.coordinator.state is MemberState.UNJOINED
    assert group.coordinator.rejoin_needed_or_pending()
    keeps_id = error is Errors.ILLEGAL_GENERATION
    assert group.coordinator.generation.member_id == (MEMBER_ID if keeps_id else "")


def test_an_answer_to_an_old_membership_is_ignored(group: Group) -> None:
    group.become_member(TP0)
    future = group.coordinator.send_heartbeat()
    group.parts.poll()
    group.coordinator.request_rejoin("test")
    group.mock.prepare_response(group.joined(2))
    group.mock.prepare_response(synced(TP0))
    assert group.join()

    group.mock.respond(heartbeat(Errors.ILLEGAL_GENERATION))
    group.parts.client.poll_future(future, group.parts.deadline())

    assert future.succeeded
    assert group.coordinator.generation.generation_id == 2


def test_a_heartbeat_tells_of_a_rebalance(group: Group) -> None:
    group.become_member(TP0)
    group.mock.prepare_response(heartbeat(Errors.REBALANCE_IN_PROGRESS))

    group.parts.client.poll_future(group.coordinator.send_heartbeat(), group.parts.deadline())

    assert group.coordinator.state is MemberState.STABLE
    assert group.coordinator.rejoin_needed_or_pending()


def test_a_moved_coordinator_is_noticed_by_the_heartbeat(group: Group) -> None:
    group.become_member(TP0)
    group.mock.prepare_response(heartbeat(Errors.NOT_COORDINATOR))

    group.parts.client.poll_future(group.coordinator.send_heartbeat(), group.parts.deadline())

    assert group.coordinator.finder.is_unknown()


def heartbeat_thread(group: Group) -> HeartbeatThread:
    """Enabled, and driven by the test instead of by its own thread."""
    thread = HeartbeatThread(group.coordinator)
    thread.enable()
    return thread


def test_the_thread_sends_a_heartbeat_when_it_is_due(group: Group) -> None:
    group.become_member(TP0)
    thread = heartbeat_thread(group)
    group.parts.time.sleep(3_000)
    group.mock.prepare_response(heartbeat())

    assert thread.run_once()
    assert group.coordinator.heartbeat.is_in_flight
    group.parts.poll()
    group.parts.poll()

    assert not group.coordinator.heartbeat.is_in_flight
    assert group.coordinator.heartbeat.time_to_next_heartbeat_ms == 3_000


def test_the_thread_gives_a_silent_coordinator_up(group: Group) -> None:
    group.become_member(TP0)
    thread = heartbeat_thread(group)
    group.parts.time.sleep(10_000)

    thread.run_once()

    assert group.coordinator.finder.is_unknown()


def test_the_thread_leaves_for_an_application_that_polls_no_more(group: Group) -> None:
    group.become_member(TP0)
    thread = heartbeat_thread(group)
    group.mock.prepare_response(LeaveGroupResponse())
    group.parts.time.sleep(60_000)
    group.coordinator.heartbeat.reset_session_timeout()

    thread.run_once()

    (leave,) = requests_of(group, LeaveGroupRequest)
    assert isinstance(leave, LeaveGroupRequest)
    assert leave.members[0].member_id == MEMBER_ID
    assert group.coordinator.state is MemberState.UNJOINED


def test_a_fenced_member_is_told_by_the_next_poll(group: Group) -> None:
    group.become_member(TP0)
    thread = heartbeat_thread(group)
    group.coordinator._heartbeat_thread = thread
    group.parts.time.sleep(3_000)
    group.mock.prepare_response(heartbeat(Errors.FENCED_INSTANCE_ID))
    thread.run_once()
    group.parts.poll()
    group.parts.poll()

    assert not thread.run_once()
    with pytest.raises(FencedInstanceIdError):
        group.coordinator.poll_heartbeat()


# Leaving


def test_closing_revokes_and_leaves(group: Group) -> None:
    group.become_member(TP0)
    group.mock.prepare_response(LeaveGroupResponse())

    group.coordinator.close(group.parts.deadline())

    assert group.listener.events[-1] == ("revoked", {TP0})
    assert len(requests_of(group, LeaveGroupRequest)) == 1
    assert group.parts.subscriptions.assigned_partitions == frozenset()


def test_a_static_member_closes_in_silence() -> None:
    group = Group(group_instance_id="instance")
    group.subscribe()
    group.become_member(TP0)

    group.coordinator.close(group.parts.deadline())

    assert requests_of(group, LeaveGroupRequest) == []
    (join,) = requests_of(group, JoinGroupRequest)
    assert isinstance(join, JoinGroupRequest) and join.group_instance_id == "instance"


def test_closing_in_the_middle_of_a_rebalance_loses_partitions() -> None:
    group = Group(CooperativeStickyAssignor())
    group.subscribe()
    group.become_member(TP0)
    group.coordinator.request_rejoin("test")
    assert not group.join(timeout_ms=20)

    group.coordinator.close(group.parts.deadline(20))

    assert group.listener.events[-1] == ("lost", {TP0})
