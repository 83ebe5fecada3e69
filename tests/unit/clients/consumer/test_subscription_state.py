"""The three modes, positions, resets and validation of a consumer's partitions."""

import re

import pytest

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.consumer.consumer_errors import NoOffsetForPartitionError
from kafkapy.clients.consumer.consumer_rebalance_listener import ConsumerRebalanceListener
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.clients.consumer.offset_reset_strategy import OffsetResetStrategy
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.consumer.topic_partition_state import (
    FetchPosition,
    FetchState,
    TopicPartitionState,
)
from kafkapy.clients.metadata import LeaderAndEpoch
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node

TP0, TP1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("other", 0)
LEADER = LeaderAndEpoch(Node(0, "h", 1), 5)
NEW_LEADER = LeaderAndEpoch(Node(1, "h", 2), 6)


@pytest.fixture
def state() -> SubscriptionState:
    return SubscriptionState(OffsetResetStrategy.EARLIEST)


def position(offset: int, epoch: int | None = 5, leader: LeaderAndEpoch = LEADER) -> FetchPosition:
    return FetchPosition(offset, epoch, leader)


def assigned(state: SubscriptionState, *partitions: TopicPartition) -> SubscriptionState:
    state.assign_from_user(partitions)
    return state


def test_partitions_assigned_by_hand_are_no_subscription(state: SubscriptionState) -> None:
    assert state.assign_from_user([TP0, OTHER])

    assert state.assigned_partitions == {TP0, OTHER}
    assert state.subscription == frozenset()
    assert state.metadata_topics == {"t", "other"}
    assert not state.is_auto_assigned


def test_the_same_assignment_changes_nothing(state: SubscriptionState) -> None:
    state.assign_from_user([TP0])

    assert not state.assign_from_user([TP0])
    assert state.assigned_partitions == {TP0}


def test_topics_are_read_once_a_group_has_assigned_partitions(state: SubscriptionState) -> None:
    listener = ConsumerRebalanceListener()
    assert state.subscribe(["t"], listener)
    assert not state.subscribe(["t"], listener)
    assert state.assigned_partitions == frozenset()

    state.assign_from_subscribed([TP0, TP1])

    assert state.assigned_partitions == {TP0, TP1}
    assert state.rebalance_listener is listener
    assert not state.is_fetchable(TP0)


def test_a_pattern_matches_whole_names(state: SubscriptionState) -> None:
    state.subscribe_pattern(re.compile("ab+"), None)

    assert state.matches_subscribed_pattern("abb")
    assert not state.matches_subscribed_pattern("abbc")
    assert state.subscribe_from_pattern(["ab", "abb"])
    assert not state.subscribe_from_pattern(["abb", "ab"])
    assert state.subscription == {"ab", "abb"}
    assert state.matches_subscription([TopicPartition("abbb", 0)])
    assert not state.matches_subscription([TP0])


def test_an_assignment_must_be_of_subscribed_topics(state: SubscriptionState) -> None:
    state.subscribe(["t"], None)

    assert state.matches_subscription([TP0, TP1])
    assert not state.matches_subscription([TP0, OTHER])


def test_the_leader_watches_the_topics_of_its_group_until_the_next_rebalance(
    state: SubscriptionState,
) -> None:
    state.subscribe(["t"], None)

    assert not state.group_subscribe(["t"])
    assert state.group_subscribe(["t", "other"])
    assert state.metadata_topics == {"t", "other"}
    assert state.needs_metadata("other")
    state.reset_group_subscription()
    assert state.metadata_topics == {"t"}


def test_only_members_of_groups_get_partitions_from_them(state: SubscriptionState) -> None:
    state.assign_from_user([TP0])

    with pytest.raises(IllegalStateError):
        state.assign_from_subscribed([TP0])
    with pytest.raises(IllegalStateError):
        state.group_subscribe(["t"])
    with pytest.raises(IllegalStateError):
        state.subscribe_from_pattern(["t"])


def test_unsubscribing_frees_the_mode(state: SubscriptionState) -> None:
    state.subscribe(["t"], None)
    with pytest.raises(IllegalStateError, match="mutually exclusive"):
        state.assign_from_user([TP0])

    state.unsubscribe()

    assert state.has_no_subscription_or_user_assignment
    assert state.assign_from_user([TP0])


def test_a_position_that_stays_assigned_is_kept(state: SubscriptionState) -> None:
    assigned(state, TP0).seek_validated(TP0, position(9))

    state.assign_from_user([TP1, TP0])

    assert state.position(TP0) == position(9)
    assert state.position(TP1) is None


def test_what_is_not_assigned_has_no_state(state: SubscriptionState) -> None:
    with pytest.raises(IllegalStateError, match="t-0"):
        state.pause(TP0)
    with pytest.raises(IllegalStateError, match="t-0"):
        state.seek_validated(TP0, position(0))
    assert state.position_if_assigned(TP0) is None
    assert not state.is_fetchable(TP0)


def test_fetchable_needs_a_position_and_no_pause(state: SubscriptionState) -> None:
    assigned(state, TP0)
    assert not state.is_fetchable(TP0)

    state.seek_validated(TP0, position(1))
    assert state.is_fetchable(TP0)
    state.pause(TP0)
    assert not state.is_fetchable(TP0)
    state.resume(TP0)
    state.request_offset_reset(TP0)
    assert not state.is_fetchable(TP0)


def test_partitions_about_to_be_revoked_are_not_fetched(state: SubscriptionState) -> None:
    state.subscribe(["t"], None)
    state.assign_from_subscribed([TP0])
    state.seek_validated(TP0, position(1))

    state.mark_pending_revocation([TP0])

    assert not state.is_fetchable(TP0)
    assert state.all_consumed() == {TP0: OffsetAndMetadata(1, "", 5)}


def test_what_had_its_turn_comes_last(state: SubscriptionState) -> None:
    assigned(state, TP0, TP1)
    for partition in (TP0, TP1):
        state.seek_validated(partition, position(0))

    state.move_partition_to_end(TP0)

    assert state.fetchable_partitions() == [TP1, TP0]


def test_a_reset_ends_with_the_offset_that_was_asked_for(state: SubscriptionState) -> None:
    assigned(state, TP0).request_offset_reset(TP0, OffsetResetStrategy.LATEST)
    assert state.partitions_needing_reset(0) == {TP0: OffsetResetStrategy.LATEST}

    state.maybe_seek_unvalidated(TP0, position(3), OffsetResetStrategy.EARLIEST)
    assert state.is_offset_reset_needed(TP0)
    state.maybe_seek_unvalidated(TP0, position(7, None), OffsetResetStrategy.LATEST)

    assert state.position(TP0) == position(7, None)
    assert not state.is_offset_reset_needed(TP0)


def test_a_seek_overtakes_a_reset(state: SubscriptionState) -> None:
    assigned(state, TP0).request_offset_reset(TP0)
    state.seek_validated(TP0, position(4))

    state.maybe_seek_unvalidated(TP0, position(0), OffsetResetStrategy.EARLIEST)

    assert state.position(TP0) == position(4)


def test_a_failed_reset_waits_before_it_is_tried_again(state: SubscriptionState) -> None:
    assigned(state, TP0).request_offset_reset(TP0)

    state.set_next_allowed_retry([TP0, OTHER], 100)

    assert state.partitions_needing_reset(99) == {}
    assert state.partitions_needing_reset(100) == {TP0: OffsetResetStrategy.EARLIEST}


def test_without_a_policy_missing_positions_raise() -> None:
    state = assigned(SubscriptionState(OffsetResetStrategy.NONE), TP0, TP1)
    state.seek_validated(TP0, position(0))

    with pytest.raises(NoOffsetForPartitionError) as raised:
        state.reset_initializing_positions()
    assert raised.value.partitions == {TP1}


def test_a_new_leader_means_validation_where_epochs_are_known(state: SubscriptionState) -> None:
    assigned(state, TP0, TP1)
    state.seek_validated(TP0, position(10))
    state.seek_validated(TP1, position(10, None))

    assert state.maybe_validate_position(TP0, NEW_LEADER, can_validate=True)
    assert not state.maybe_validate_position(TP1, NEW_LEADER, can_validate=True)

    assert not state.is_fetchable(TP0) and state.valid_position(TP0) is None
    assert state.is_fetchable(TP1)
    assert state.partitions_needing_validation(0) == [TP0]
    state.complete_validation(TP0)
    assert state.valid_position(TP0) == position(10, 5, NEW_LEADER)


def test_a_leader_that_cannot_be_asked_is_taken_as_it_is(state: SubscriptionState) -> None:
    assigned(state, TP0).seek_validated(TP0, position(10))

    assert not state.maybe_validate_position(TP0, NEW_LEADER, can_validate=False)

    assert state.valid_position(TP0) == position(10, 5, NEW_LEADER)


@pytest.mark.parametrize(
    ("leader_epoch", "end_offset", "expected"),
    [(5, 10, position(10)), (5, 50, position(10)), (4, 7, position(7, 4))],
)
def test_validation_goes_back_to_where_the_logs_part(
    state: SubscriptionState, leader_epoch: int, end_offset: int, expected: FetchPosition
) -> None:
    assigned(state, TP0).seek_unvalidated(TP0, position(10))

    truncation = state.maybe_complete_validation(
        TP0, position(10), leader_epoch=leader_epoch, end_offset=end_offset
    )

    assert truncation is None
    assert state.valid_position(TP0) == expected


def test_an_epoch_without_end_resets(state: SubscriptionState) -> None:
    assigned(state, TP0).seek_unvalidated(TP0, position(10))

    state.maybe_complete_validation(TP0, position(10), leader_epoch=-1, end_offset=-1)

    assert state.is_offset_reset_needed(TP0)


def test_truncation_is_for_the_application_to_settle_without_a_policy() -> None:
    state = assigned(SubscriptionState(OffsetResetStrategy.NONE), TP0)
    state.seek_unvalidated(TP0, position(10))

    truncation = state.maybe_complete_validation(TP0, position(10), leader_epoch=4, end_offset=7)

    assert truncation is not None
    assert truncation.divergent_offset == OffsetAndMetadata(7, "", 4)
    assert state.is_awaiting_validation(TP0)


def test_an_answer_about_another_position_is_ignored(state: SubscriptionState) -> None:
    assigned(state, TP0).seek_unvalidated(TP0, position(10))
    state.seek_unvalidated(TP0, position(20))

    state.maybe_complete_validation(TP0, position(10), leader_epoch=4, end_offset=7)

    assert state.position(TP0) == position(20)
    assert state.is_awaiting_validation(TP0)


def test_lag_follows_from_the_ends_of_the_log(state: SubscriptionState) -> None:
    assigned(state, TP0).seek_validated(TP0, position(10))
    assert state.partition_lag(TP0, read_committed=False) is None

    state.update_log_ends(TP0, high_watermark=25, last_stable_offset=15)
    state.update_log_ends(TP0, high_watermark=-1, last_stable_offset=-1)

    assert state.partition_lag(TP0, read_committed=False) == 15
    assert state.partition_lag(TP0, read_committed=True) == 5


def test_a_preferred_replica_expires(state: SubscriptionState) -> None:
    assigned(state, TP0)
    state.update_preferred_read_replica(TP0, 3, 100)

    assert state.preferred_read_replica(TP0, 99) == 3
    assert state.preferred_read_replica(TP0, 100) is None
    assert state.clear_preferred_read_replica(TP0) == 3
    assert state.clear_preferred_read_replica(TP0) is None


def test_advancing_needs_the_position_to_be_as_expected(state: SubscriptionState) -> None:
    assigned(state, TP0).seek_validated(TP0, position(3))

    assert state.advance_position(TP0, 3, 4)
    assert not state.advance_position(TP0, 3, 4)
    state.pause(TP0)
    assert not state.advance_position(TP0, 4, 5)
    assert not state.advance_position(OTHER, 0, 1)


@pytest.mark.parametrize("previous", list(FetchState))
@pytest.mark.parametrize("wanted", list(FetchState))
def test_legal_moves_between_fetch_states(previous: FetchState, wanted: FetchState) -> None:
    illegal = wanted is FetchState.INITIALIZING or (
        previous is FetchState.AWAIT_RESET and wanted is FetchState.AWAIT_VALIDATION
    )

    assert wanted.may_follow(previous) is not illegal


def test_no_state_that_needs_a_position_is_entered_without_one() -> None:
    state = TopicPartitionState()

    state.complete_validation()
    state.update_leader_without_validation(NEW_LEADER)

    assert state.fetch_state is FetchState.INITIALIZING
