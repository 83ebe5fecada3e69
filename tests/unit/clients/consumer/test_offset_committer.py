"""Commits and committed offsets, with every answer a coordinator may give."""

from collections.abc import Mapping

import pytest

from kafkapy.clients.consumer.consumer_errors import (
    CommitFailedError,
    RetriableCommitFailedError,
)
from kafkapy.clients.consumer.group_membership import MemberState
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.common.errors import (
    Errors,
    FencedInstanceIdError,
    GroupAuthorizationError,
    KafkaError,
    RebalanceInProgressError,
    TopicAuthorizationError,
)
from kafkapy.common.protocol.messages.offset_commit import OffsetCommitRequest
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest
from kafkapy.common.types import TopicPartition
from tests.unit.clients.consumer.group import (
    GROUP_ID,
    MEMBER_ID,
    Group,
    committed,
    found,
    offset_fetched,
)
from tests.unit.clients.consumer.parts import TP0

OFFSETS = {TP0: OffsetAndMetadata(12, "noted", 4)}


class Callback:
    """What commits called back with."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Exception | None]] = []

    def __call__(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: Exception | None
    ) -> None:
        self.calls.append((offsets[TP0].offset, error))


@pytest.fixture
def member() -> Group:
    group = Group()
    group.subscribe()
    group.become_member(TP0)
    return group


@pytest.fixture
def alone() -> Group:
    """With partitions assigned by hand."""
    group = Group()
    group.parts.assign(TP0)
    group.find_coordinator()
    return group


def commit(group: Group, timeout_ms: int = 1_000) -> bool:
    return group.coordinator.committer.commit_sync(OFFSETS, group.parts.deadline(timeout_ms))


def test_a_member_commits_in_its_generation(member: Group) -> None:
    member.mock.prepare_response(committed())

    assert commit(member)

    request = member.mock.requests[-1]
    assert isinstance(request, OffsetCommitRequest)
    assert (request.group_id, request.member_id) == (GROUP_ID, MEMBER_ID)
    assert request.generation_id_or_member_epoch == 1
    (partition,) = request.topics[0].partitions
    assert (partition.committed_offset, partition.committed_leader_epoch) == (12, 4)
    assert partition.committed_metadata == "noted"


def test_a_consumer_on_its_own_commits_without_a_generation(alone: Group) -> None:
    alone.mock.prepare_response(committed())

    assert commit(alone)

    request = alone.mock.requests[-1]
    assert isinstance(request, OffsetCommitRequest)
    assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")


@pytest.mark.parametrize(
    "error", [Errors.COORDINATOR_LOAD_IN_PROGRESS, Errors.UNKNOWN_TOPIC_OR_PARTITION]
)
def test_a_commit_is_repeated_until_it_succeeds(member: Group, error: Errors) -> None:
    member.mock.prepare_response(committed(error))
    member.mock.prepare_response(committed())

    assert commit(member)


@pytest.mark.parametrize(
    "error",
    [Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE, Errors.REQUEST_TIMED_OUT],
)
def test_a_commit_follows_the_coordinator(member: Group, error: Errors) -> None:
    member.mock.prepare_response(committed(error))
    member.mock.prepare_response(found())
    member.mock.prepare_response(committed())

    assert commit(member)


def test_a_commit_that_is_not_answered_ends_with_the_deadline(member: Group) -> None:
    assert not commit(member, timeout_ms=200)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Errors.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError),
        (Errors.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (Errors.OFFSET_METADATA_TOO_LARGE, KafkaError),
        (Errors.INVALID_COMMIT_OFFSET_SIZE, KafkaError),
        (Errors.FENCED_INSTANCE_ID, FencedInstanceIdError),
        (Errors.UNKNOWN_MEMBER_ID, CommitFailedError),
        (Errors.ILLEGAL_GENERATION, CommitFailedError),
        (Errors.REBALANCE_IN_PROGRESS, RebalanceInProgressError),
        (Errors.INVALID_REQUEST, KafkaError),
    ],
)
def test_some_errors_are_for_the_application(
    member: Group, error: Errors, raised: type[KafkaError]
) -> None:
    member.mock.prepare_response(committed(error))

    with pytest.raises(raised):
        commit(member)


@pytest.mark.parametrize("error", [Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION])
def test_a_commit_may_find_the_membership_gone(member: Group, error: Errors) -> None:
    member.mock.prepare_response(committed(error))
    with pytest.raises(CommitFailedError):
        commit(member)

    assert member.coordinator.state is MemberState.UNJOINED
    # Until it has joined again there is nothing to commit as.
    with pytest.raises(CommitFailedError, match="not a member"):
        commit(member)


def test_a_commit_during_a_rebalance_asks_for_a_poll_first(member: Group) -> None:
    member.coordinator.request_rejoin("test")
    assert not member.join(timeout_ms=20)

    with pytest.raises(RebalanceInProgressError, match="poll"):
        commit(member)


def test_callbacks_come_in_the_order_of_the_commits(member: Group) -> None:
    callback = Callback()
    committer = member.coordinator.committer
    for offset in (1, 2):
        committer.commit_async({TP0: OffsetAndMetadata(offset)}, callback)
    member.mock.respond(committed())
    member.mock.respond(committed(Errors.COORDINATOR_LOAD_IN_PROGRESS))
    member.mock.prepare_response(committed())

    assert commit(member)

    assert [offset for offset, _ in callback.calls] == [1, 2]
    assert callback.calls[0][1] is None
    assert isinstance(callback.calls[1][1], RetriableCommitFailedError)


def test_a_commit_of_nothing_waits_for_those_before_it(member: Group) -> None:
    callback = Callback()
    committer = member.coordinator.committer
    committer.commit_async(OFFSETS, callback)
    assert not committer.commit_sync({}, member.parts.deadline(50))

    member.mock.respond(committed())

    assert committer.commit_sync({}, member.parts.deadline(50))
    assert callback.calls == [(12, None)]


def test_commits_wait_together_for_a_coordinator() -> None:
    group = Group()
    group.parts.assign(TP0)
    callback = Callback()
    committer = group.coordinator.committer
    for offset in (1, 2):
        committer.commit_async({TP0: OffsetAndMetadata(offset)}, callback)
    assert len(group.mock.requests) == 1

    group.mock.respond(found())
    group.mock.prepare_response(committed())
    group.mock.prepare_response(committed())

    assert committer.await_pending_commits(group.parts.deadline())
    assert callback.calls == [(1, None), (2, None)]


def test_a_fenced_member_cannot_go_on(member: Group) -> None:
    callback = Callback()
    member.coordinator.committer.commit_async(OFFSETS, callback)
    member.mock.respond(committed(Errors.FENCED_INSTANCE_ID))
    member.parts.poll()

    with pytest.raises(FencedInstanceIdError):
        member.coordinator.committer.invoke_completed_callbacks()


def fetch(group: Group, timeout_ms: int = 1_000) -> object:
    return group.coordinator.committer.fetch_committed([TP0], group.parts.deadline(timeout_ms))


def test_committed_offsets_are_read_with_their_text(alone: Group) -> None:
    alone.mock.prepare_response(offset_fetched(7, metadata="noted"))

    assert fetch(alone) == {TP0: OffsetAndMetadata(7, "noted", None)}

    request = alone.mock.requests[-1]
    assert isinstance(request, OffsetFetchRequest) and request.require_stable


def test_a_partition_without_a_commit_has_none(alone: Group) -> None:
    alone.mock.prepare_response(offset_fetched(-1))

    assert fetch(alone) == {TP0: None}


def test_offsets_of_open_transactions_are_waited_for(alone: Group) -> None:
    alone.mock.prepare_response(offset_fetched(-1, partition_error=Errors.UNSTABLE_OFFSET_COMMIT))
    alone.mock.prepare_response(offset_fetched(3))

    assert fetch(alone) == {TP0: OffsetAndMetadata(3, "", None)}


@pytest.mark.parametrize("error", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_LOAD_IN_PROGRESS])
def test_reading_is_tried_again(alone: Group, error: Errors) -> None:
    alone.mock.prepare_response(offset_fetched(-1, error=error))
    if error is Errors.NOT_COORDINATOR:
        alone.mock.prepare_response(found())
    alone.mock.prepare_response(offset_fetched(3))

    assert fetch(alone) == {TP0: OffsetAndMetadata(3, "", None)}


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (offset_fetched(-1, error=Errors.GROUP_AUTHORIZATION_FAILED), GroupAuthorizationError),
        (
            offset_fetched(-1, partition_error=Errors.TOPIC_AUTHORIZATION_FAILED),
            TopicAuthorizationError,
        ),
        (offset_fetched(-1, partition_error=Errors.UNKNOWN_TOPIC_OR_PARTITION), KafkaError),
    ],
)
def test_reading_may_be_refused(alone: Group, answer: object, raised: type[KafkaError]) -> None:
    alone.mock.prepare_response(answer)  # type: ignore[arg-type]

    with pytest.raises(raised):
        fetch(alone)


def test_a_question_that_outlived_its_call_is_not_asked_twice(alone: Group) -> None:
    assert fetch(alone, timeout_ms=50) is None
    before = len(alone.mock.requests)

    alone.mock.respond(offset_fetched(3))

    assert fetch(alone) == {TP0: OffsetAndMetadata(3, "", None)}
    assert len(alone.mock.requests) == before


def test_positions_start_at_committed_offsets(alone: Group) -> None:
    alone.parts.subscriptions.unsubscribe()
    alone.parts.assign(TP0, offset=None)
    alone.mock.prepare_response(offset_fetched(7))

    assert alone.coordinator.init_with_committed_offsets_if_needed(alone.parts.deadline())

    position = alone.parts.subscriptions.valid_position(TP0)
    assert position is not None and position.offset == 7
