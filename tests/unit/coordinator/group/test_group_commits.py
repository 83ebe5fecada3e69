from collections.abc import Callable

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.record.control_record import ControlRecordType, EndTransactionMarker
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.storage.append_origin import AppendOrigin
from tests.unit.coordinator.group.conftest import MakeGroups
from tests.unit.coordinator.group.harness import (
    GROUP,
    INITIAL_DELAY_MS,
    OFFSETS_PARTITION,
    SESSION_MS,
    TP,
    GroupHarness,
)

OTHER = TopicPartition("u", 3)
PRODUCER = 7


def fetch(groups: GroupHarness, *partitions: TopicPartition, require_stable: bool = False):
    return groups.coordinator.handle_fetch_offsets(GROUP, partitions, require_stable=require_stable)


def end_transaction(groups: GroupHarness, result: TransactionResult) -> None:
    """The marker in the log, and the call that follows it."""
    marker = EndTransactionMarker(
        ControlRecordType.COMMIT if result is TransactionResult.COMMIT else ControlRecordType.ABORT,
        0,
    )
    partition = groups.replicas.replica_manager.get_partition_or_raise(OFFSETS_PARTITION)
    partition.append_records_to_leader(
        MemoryRecords.with_end_transaction_marker(
            marker,
            timestamp=groups.time.milliseconds(),
            producer_id=PRODUCER,
            producer_epoch=0,
        ),
        AppendOrigin.COORDINATOR,
        1,
    )
    completions: list[Exception | None] = []
    groups.coordinator.schedule_handle_txn_completion(
        PRODUCER, [OFFSETS_PARTITION], result, on_complete=completions.append
    )
    assert completions == [None]


def test_consumer_without_group_membership_commits(groups: GroupHarness) -> None:
    assert groups.commit({TP: 5, OTHER: 6}) == {TP: Errors.NONE, OTHER: Errors.NONE}

    assert groups.offsets() == {TP: 5, OTHER: 6}
    assert groups.state() == "Empty"


def test_partition_without_offset_is_answered_with_none(groups: GroupHarness) -> None:
    assert fetch(groups, TP) == (Errors.NONE, {TP: (Errors.NONE, None)})

    groups.commit({OTHER: 1})

    assert fetch(groups, TP) == (Errors.NONE, {TP: (Errors.NONE, None)})


def test_member_commits_in_its_generation(groups: GroupHarness) -> None:
    members, generation = groups.stable_group()

    errors = groups.commit(5, member_id=members[0], generation_id=generation)

    assert errors == {TP: Errors.NONE}
    assert groups.offsets() == {TP: 5}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"member_id": "nobody"}, Errors.UNKNOWN_MEMBER_ID),
        ({"member_id": "", "generation_id": -1}, Errors.UNKNOWN_MEMBER_ID),
        ({"generation_id": 0}, Errors.ILLEGAL_GENERATION),
        ({"generation_id": 2}, Errors.ILLEGAL_GENERATION),
        ({"generation_id": -1}, Errors.ILLEGAL_GENERATION),
        ({"instance_id": "i"}, Errors.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, Errors.ILLEGAL_GENERATION),
    ],
)
def test_wrong_commit_is_refused_and_changes_nothing(
    groups: GroupHarness, change: dict, error: Errors
) -> None:
    members, generation = groups.stable_group()
    stored = len(groups.stored_records())

    errors = groups.commit(5, **{"member_id": members[0], "generation_id": generation, **change})

    assert errors == {TP: error}
    assert groups.offsets() == {}
    assert len(groups.stored_records()) == stored


def test_member_may_commit_while_a_rebalance_is_prepared(groups: GroupHarness) -> None:
    (leader, follower), generation = groups.stable_group(2)
    groups.join(leader)

    errors = groups.commit(5, member_id=follower, generation_id=generation)

    assert errors == {TP: Errors.NONE}


def test_member_may_not_commit_before_it_has_its_assignment(groups: GroupHarness) -> None:
    joined = groups.join()
    groups.pass_ms(INITIAL_DELAY_MS)

    errors = groups.commit(5, member_id=joined[0].member_id, generation_id=1)

    assert errors == {TP: Errors.REBALANCE_IN_PROGRESS}


@pytest.mark.parametrize("names_itself", [True, False])
@pytest.mark.parametrize("is_last", [True, False])
def test_commit_that_comes_after_its_member_has_left_is_refused(
    groups: GroupHarness, names_itself: bool, is_last: bool
) -> None:
    members, generation = groups.stable_group(1 if is_last else 2)
    groups.leave(members[0])

    errors = groups.commit(
        5, member_id=members[0] if names_itself else "", generation_id=generation
    )

    assert errors == {TP: Errors.UNKNOWN_MEMBER_ID}
    assert groups.offsets() == {}


def test_commits_keep_a_member_alive(groups: GroupHarness) -> None:
    members, generation = groups.stable_group()

    for offset in range(5):
        groups.pass_ms(SESSION_MS - 500)
        groups.commit(offset, member_id=members[0], generation_id=generation)

    assert groups.state() == "Stable"


def test_long_metadata_is_refused_for_its_partition_only(make_groups: MakeGroups) -> None:
    groups = make_groups(offset_metadata_max_bytes=4)

    assert groups.commit(5, metadata="12345") == {TP: Errors.OFFSET_METADATA_TOO_LARGE}
    assert groups.commit(5, metadata="1234") == {TP: Errors.NONE}


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ("éééé", Errors.NONE),
        ("\uffff" * 4, Errors.NONE),
        ("😀😀", Errors.NONE),
        ("😀😀é", Errors.OFFSET_METADATA_TOO_LARGE),
    ],
)
def test_length_of_metadata_is_counted_in_utf_16_units(
    make_groups: MakeGroups, metadata: str, error: Errors
) -> None:
    groups = make_groups(offset_metadata_max_bytes=4)

    assert groups.commit(5, metadata=metadata) == {TP: error}


@pytest.mark.parametrize(
    ("result", "expected"),
    [(TransactionResult.COMMIT, {TP: 9}), (TransactionResult.ABORT, {TP: 5})],
)
def test_transactional_offsets_count_when_the_transaction_does(
    groups: GroupHarness, result: TransactionResult, expected: dict
) -> None:
    groups.commit(5)
    assert groups.txn_commit(9) == {TP: Errors.NONE}
    assert groups.offsets() == {TP: 5}

    end_transaction(groups, result)

    assert groups.offsets() == expected
    groups.restart()
    assert groups.offsets() == expected


def test_open_transaction_makes_offsets_unstable(groups: GroupHarness) -> None:
    groups.commit({TP: 5, OTHER: 6})
    groups.txn_commit(9)

    _, fetched = fetch(groups, TP, OTHER, require_stable=True)

    assert fetched[TP] == (Errors.UNSTABLE_OFFSET_COMMIT, None)
    assert fetched[OTHER][0] is Errors.NONE
    assert fetch(groups, TP)[1][TP][0] is Errors.NONE


def test_open_transaction_is_open_after_a_restart(groups: GroupHarness) -> None:
    groups.commit(5)
    groups.txn_commit(9)

    groups.restart()
    assert fetch(groups, TP, require_stable=True)[1][TP][0] is Errors.UNSTABLE_OFFSET_COMMIT

    end_transaction(groups, TransactionResult.COMMIT)
    assert groups.offsets() == {TP: 9}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"member_id": "nobody", "generation_id": 1}, Errors.UNKNOWN_MEMBER_ID),
        ({"generation_id": 0}, Errors.ILLEGAL_GENERATION),
        ({"instance_id": "i"}, Errors.UNKNOWN_MEMBER_ID),
    ],
)
def test_wrong_transactional_commit_is_refused(
    groups: GroupHarness, change: dict, error: Errors
) -> None:
    members, generation = groups.stable_group()

    errors = groups.txn_commit(
        5, **{"member_id": members[0], "generation_id": generation, **change}
    )

    assert errors == {TP: error}
    assert fetch(groups, TP, require_stable=True)[1][TP] == (Errors.NONE, None)


@pytest.mark.parametrize(
    "delete",
    [
        lambda groups: groups.coordinator.handle_delete_groups([GROUP]),
        lambda groups: groups.coordinator.handle_delete_offsets(GROUP, [TP]),
        lambda groups: groups.coordinator.handle_deleted_partitions([TP]),
    ],
    ids=["group", "offset", "topic"],
)
@pytest.mark.parametrize("is_loaded_in_between", [False, True])
def test_offset_that_is_deleted_within_a_transaction_does_not_come_back(
    groups: GroupHarness,
    delete: Callable[[GroupHarness], object],
    is_loaded_in_between: bool,
) -> None:
    groups.txn_commit(5)
    delete(groups)
    if is_loaded_in_between:
        groups.restart()
    end_transaction(groups, TransactionResult.COMMIT)
    assert groups.offsets() == {}

    groups.restart()

    assert groups.offsets() == {}


def test_commit_of_an_open_transaction_outlives_the_expiry_of_its_predecessor(
    make_groups: MakeGroups,
) -> None:
    groups = make_groups(**{"offsets.retention.minutes": 1})
    groups.commit(5)
    groups.txn_commit(6)
    groups.pass_ms(60_000)
    groups.coordinator._group_manager.cleanup_expired_offsets()
    end_transaction(groups, TransactionResult.COMMIT)
    assert groups.offsets() == {TP: 6}

    groups.restart()

    assert groups.offsets() == {TP: 6}


def test_old_transactional_client_need_not_name_itself(groups: GroupHarness) -> None:
    groups.stable_group()

    assert groups.txn_commit(5) == {TP: Errors.NONE}


def test_lost_leadership_fails_the_commit_and_leaves_the_offset(groups: GroupHarness) -> None:
    groups.commit(5)
    groups.replicas.leader_and_isr(OFFSETS_PARTITION, leader=2, leader_epoch=1, replicas=(1, 2))

    assert groups.commit(6) == {TP: Errors.NOT_COORDINATOR}
    assert groups.txn_commit(6) == {TP: Errors.NOT_COORDINATOR}
    assert groups.offsets() == {TP: 5}
    assert fetch(groups, TP, require_stable=True)[1][TP][0] is Errors.NONE


def test_commits_are_counted(groups: GroupHarness) -> None:
    groups.commit({TP: 1, OTHER: 2})

    assert groups.replicas.metric("NumOffsets") == 2
    assert groups.replicas.metric("NumGroups") == 1
    assert groups.replicas.metric("NumGroupsEmpty") == 1
    assert groups.replicas.metric("offset-commit-count") == 2
