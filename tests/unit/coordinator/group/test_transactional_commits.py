"""Offsets in a transaction: verified before they are stored, in force when it is complete."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.coordinator.group.group_state import IllegalGroupStateError
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.storage.append_origin import AppendOrigin
from tests.helpers.records import end_txn_marker
from tests.unit.coordinator.group.harness import GROUP, OFFSETS_PARTITION, TP, GroupHarness

PRODUCER = 7
STABLE_AND_NONE = (Errors.NONE, None)


def write_marker(groups: GroupHarness, result: ControlRecordType) -> None:
    partition = groups.replicas.replica_manager.get_partition_or_raise(OFFSETS_PARTITION)
    partition.append_records_to_leader(
        end_txn_marker(result, producer_id=PRODUCER, producer_epoch=0),
        AppendOrigin.COORDINATOR,
        1,
    )


def stable_offset(groups: GroupHarness):
    return groups.coordinator.handle_fetch_offsets(GROUP, [TP], require_stable=True)[1][TP]


def complete(groups: GroupHarness, result: TransactionResult) -> list[Exception | None]:
    reports: list[Exception | None] = []
    groups.coordinator.schedule_handle_txn_completion(
        PRODUCER, [OFFSETS_PARTITION], result, on_complete=reports.append
    )
    return reports


class TestVerification:
    def test_only_the_first_commit_of_a_transaction_is_verified(self, groups: GroupHarness) -> None:
        assert groups.txn_commit(5) == {TP: Errors.NONE}
        assert groups.txn_commit(6) == {TP: Errors.NONE}

        assert groups.verifier.asked == [[OFFSETS_PARTITION]]

    def test_nothing_is_pending_until_it_has_succeeded(self, groups: GroupHarness) -> None:
        groups.verifier.holds_back = True

        answers = groups.start_txn_commit(5)
        assert answers == []
        assert stable_offset(groups) == STABLE_AND_NONE
        groups.verifier.callbacks.pop()({})

        assert answers == [{TP: Errors.NONE}]
        assert stable_offset(groups)[0] is Errors.UNSTABLE_OFFSET_COMMIT

    @pytest.mark.parametrize(
        ("found", "told"),
        [
            (Errors.NETWORK_EXCEPTION, Errors.COORDINATOR_LOAD_IN_PROGRESS),
            (Errors.NOT_ENOUGH_REPLICAS, Errors.COORDINATOR_NOT_AVAILABLE),
            (Errors.NOT_LEADER_OR_FOLLOWER, Errors.NOT_COORDINATOR),
            (Errors.TRANSACTION_ABORTABLE, Errors.TRANSACTION_ABORTABLE),
            (Errors.INVALID_PRODUCER_EPOCH, Errors.INVALID_PRODUCER_EPOCH),
            (Errors.INVALID_PRODUCER_ID_MAPPING, Errors.INVALID_PRODUCER_ID_MAPPING),
            (Errors.CONCURRENT_TRANSACTIONS, Errors.CONCURRENT_TRANSACTIONS),
        ],
    )
    def test_failure_is_told_and_stores_nothing(
        self, groups: GroupHarness, found: Errors, told: Errors
    ) -> None:
        groups.verifier.unverified = {OFFSETS_PARTITION: found}

        assert groups.txn_commit(5) == {TP: told}
        assert stable_offset(groups) == STABLE_AND_NONE
        assert groups.stored_records() == []

    def test_marker_that_overtakes_it_keeps_the_commit_out(self, groups: GroupHarness) -> None:
        groups.verifier.holds_back = True
        answers = groups.start_txn_commit(5)

        write_marker(groups, ControlRecordType.ABORT)
        groups.verifier.callbacks.pop()({})

        assert answers == [{TP: Errors.INVALID_TXN_STATE}]
        assert stable_offset(groups) == STABLE_AND_NONE

    def test_member_that_has_left_meanwhile_is_refused(self, groups: GroupHarness) -> None:
        (member_id,), generation_id = groups.stable_group()
        groups.verifier.holds_back = True
        answers = groups.start_txn_commit(5, member_id=member_id, generation_id=generation_id)

        groups.leave(member_id)
        groups.verifier.callbacks.pop()({})

        assert answers == [{TP: Errors.UNKNOWN_MEMBER_ID}]
        assert stable_offset(groups) == STABLE_AND_NONE

    def test_group_that_is_elsewhere_is_not_verified(self, groups: GroupHarness) -> None:
        groups.coordinator.on_resignation(0, None)

        assert groups.txn_commit(5) == {TP: Errors.NOT_COORDINATOR}
        assert groups.verifier.asked == []


class TestCompletion:
    def test_it_is_reported_when_the_offsets_are_in_force(self, groups: GroupHarness) -> None:
        groups.txn_commit(5)
        seen: list[dict] = []

        groups.coordinator.schedule_handle_txn_completion(
            PRODUCER,
            [OFFSETS_PARTITION],
            TransactionResult.COMMIT,
            on_complete=lambda failure: seen.append(groups.offsets(require_stable=True)),
        )

        assert seen == [{TP: 5}]

    def test_failure_is_reported(self, groups: GroupHarness) -> None:
        groups.replicas.leader_and_isr(OFFSETS_PARTITION, leader_epoch=1, replicas=(1, 2))
        assert groups.start_txn_commit(5) == []  # broker 2 has yet to fetch it

        (failure,) = complete(groups, TransactionResult.COMMIT)

        assert isinstance(failure, IllegalGroupStateError)

    def test_producer_without_offsets_here_is_complete_at_once(self, groups: GroupHarness) -> None:
        assert complete(groups, TransactionResult.ABORT) == [None]
