from __future__ import annotations

import pytest

from kafkapy.common.errors import Errors
from kafkapy.coordinator.transaction.transaction_coordinator import InitProducerIdResult
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from tests.unit.coordinator.transaction.conftest import MakeTransactions
from tests.unit.coordinator.transaction.harness import (
    LOG,
    TIMEOUT_MS,
    TXN_ID,
    A,
    B,
    TransactionHarness,
    partitions_of,
)

S = TransactionState
COMMIT, ABORT = TransactionResult.COMMIT, TransactionResult.ABORT
MAX_EPOCH = 32767
REACHABLE = [s for s in S if s not in (S.DEAD, S.PREPARE_EPOCH_FENCE)]


class TestInitProducerId:
    def test_idempotent_producers_get_ids_of_their_own_and_no_record(
        self, txn: TransactionHarness
    ) -> None:
        assert [txn.init(None) for _ in range(2)] == [
            InitProducerIdResult(Errors.NONE, 1000, 0),
            InitProducerIdResult(Errors.NONE, 1001, 0),
        ]
        assert txn.logged() == []

    def test_empty_transactional_id_is_an_invalid_request(self, txn: TransactionHarness) -> None:
        assert txn.init("").error is Errors.INVALID_REQUEST

    @pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001])
    def test_timeout_must_be_positive_and_within_the_limit(
        self, txn: TransactionHarness, timeout_ms: int
    ) -> None:
        assert txn.init(timeout_ms=timeout_ms).error is Errors.INVALID_TRANSACTION_TIMEOUT
        assert txn.state_manager.get_transaction_state(TXN_ID) is None

    def test_the_limit_itself_is_allowed(self, txn: TransactionHarness) -> None:
        assert txn.init(timeout_ms=900_000).error is Errors.NONE

    def test_successor_gets_the_same_id_at_the_next_epoch(self, txn: TransactionHarness) -> None:
        first, second = txn.init(), txn.init()

        assert first == InitProducerIdResult(Errors.NONE, 1000, 0)
        assert second == InitProducerIdResult(Errors.NONE, 1000, 1)
        assert txn.logged() == [(TXN_ID, S.EMPTY)] * 2

    def test_open_transaction_of_the_predecessor_is_aborted_first(
        self, txn: TransactionHarness
    ) -> None:
        old = txn.started()

        assert txn.init().error is Errors.CONCURRENT_TRANSACTIONS
        assert txn.metadata().state is S.PREPARE_ABORT
        assert txn.init().error is Errors.CONCURRENT_TRANSACTIONS

        (request,) = txn.deliver()
        successor = txn.init()

        assert [m.producer_epoch for m in request.markers] == [old[1] + 1]
        assert successor == InitProducerIdResult(Errors.NONE, old[0], old[1] + 2)
        assert txn.add(A, producer=old) is Errors.PRODUCER_FENCED
        assert txn.end(COMMIT, producer=old) is Errors.PRODUCER_FENCED

    @pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
    def test_successor_waits_for_the_markers(self, txn: TransactionHarness, state: S) -> None:
        txn.bring_to(state)

        assert txn.init().error is Errors.CONCURRENT_TRANSACTIONS

        txn.deliver()

        assert txn.init().error is Errors.NONE

    def test_exhausted_epochs_bring_another_id(self, txn: TransactionHarness) -> None:
        txn.init()
        txn.metadata().producer_epoch = MAX_EPOCH - 1

        assert txn.init() == InitProducerIdResult(Errors.NONE, 1001, 0)

    def test_fencing_with_the_last_epoch_brings_another_id(self, txn: TransactionHarness) -> None:
        txn.started()
        txn.metadata().producer_epoch = MAX_EPOCH - 1

        assert txn.init().error is Errors.CONCURRENT_TRANSACTIONS
        txn.deliver()

        assert txn.init() == InitProducerIdResult(Errors.NONE, 1001, 0)


class TestContinuingProducer:
    """KIP-360: a producer names the id and epoch it has."""

    def test_it_gets_its_next_epoch_and_a_repeated_request_the_same(
        self, txn: TransactionHarness
    ) -> None:
        txn.init()

        assert txn.init(expected=(1000, 0)) == InitProducerIdResult(Errors.NONE, 1000, 1)
        assert txn.init(expected=(1000, 0)) == InitProducerIdResult(Errors.NONE, 1000, 1)
        assert txn.init(expected=(1000, 1)) == InitProducerIdResult(Errors.NONE, 1000, 2)

    def test_repeated_request_for_the_last_epoch_gets_the_same(
        self, txn: TransactionHarness
    ) -> None:
        txn.init()
        txn.metadata().producer_epoch = MAX_EPOCH - 2
        last = InitProducerIdResult(Errors.NONE, 1000, MAX_EPOCH - 1)

        assert txn.init(expected=(1000, MAX_EPOCH - 2)) == last
        assert txn.init(expected=(1000, MAX_EPOCH - 2)) == last

    def test_outlived_epoch_is_fenced_when_epochs_are_exhausted(
        self, txn: TransactionHarness
    ) -> None:
        txn.init()
        txn.metadata().producer_epoch = MAX_EPOCH - 1

        assert txn.init(expected=(1000, 5)).error is Errors.PRODUCER_FENCED

    def test_unknown_transactional_id_is_made_for_it(self, txn: TransactionHarness) -> None:
        assert txn.init(expected=(77, 5)) == InitProducerIdResult(Errors.NONE, 1000, 0)

    @pytest.mark.parametrize("expected", [(1000, 0), (1000, 3), (999, 2)])
    def test_stale_and_foreign_ones_are_fenced(
        self, txn: TransactionHarness, expected: tuple[int, int]
    ) -> None:
        for _ in range(3):
            txn.init()
        records = len(txn.logged())

        assert txn.init(expected=expected).error is Errors.PRODUCER_FENCED
        assert (txn.metadata().producer_epoch, len(txn.logged())) == (2, records)

    def test_successor_cannot_be_undone_by_the_one_it_replaced(
        self, txn: TransactionHarness
    ) -> None:
        txn.init()
        txn.init(expected=(1000, 0))
        txn.init()

        assert txn.init(expected=(1000, 1)).error is Errors.PRODUCER_FENCED
        assert txn.init(expected=(1000, 0)).error is Errors.PRODUCER_FENCED

    def test_lost_answer_about_another_id_is_given_again(self, txn: TransactionHarness) -> None:
        txn.init()
        txn.metadata().producer_epoch = MAX_EPOCH - 1

        first = txn.init(expected=(1000, MAX_EPOCH - 1))
        again = txn.init(expected=(1000, MAX_EPOCH - 1))

        assert first == again == InitProducerIdResult(Errors.NONE, 1001, 0)


class TestAddPartitions:
    def test_transaction_begins_with_its_first_partition(self, txn: TransactionHarness) -> None:
        producer = txn.bring_to(S.EMPTY)
        txn.time.sleep(50)

        assert txn.add(A, producer=producer) is Errors.NONE
        begun = txn.time.milliseconds()
        txn.time.sleep(50)
        assert txn.add(B, producer=producer) is Errors.NONE

        metadata = txn.metadata()
        assert (metadata.state, metadata.topic_partitions) == (S.ONGOING, {A, B})
        assert metadata.txn_start_timestamp == begun

    def test_known_partitions_need_no_record(self, txn: TransactionHarness) -> None:
        producer = txn.started(A, B)
        records = len(txn.logged())

        assert txn.add(B, producer=producer) is Errors.NONE
        assert len(txn.logged()) == records

    @pytest.mark.parametrize("name", [None, ""])
    def test_transactional_id_is_needed(self, txn: TransactionHarness, name: str | None) -> None:
        assert txn.add(A, producer=(1, 0), name=name) is Errors.INVALID_REQUEST

    def test_unknown_transactional_id(self, txn: TransactionHarness) -> None:
        assert txn.add(A, producer=(1, 0)) is Errors.INVALID_PRODUCER_ID_MAPPING

    @pytest.mark.parametrize("state", REACHABLE)
    @pytest.mark.parametrize(
        ("id_delta", "epoch_delta", "error"),
        [
            (1, 0, Errors.INVALID_PRODUCER_ID_MAPPING),
            (0, -1, Errors.PRODUCER_FENCED),
            (0, 1, Errors.PRODUCER_FENCED),
        ],
    )
    def test_other_producers_are_refused_in_every_state_and_change_nothing(
        self, txn: TransactionHarness, state: S, id_delta: int, epoch_delta: int, error: Errors
    ) -> None:
        producer_id, epoch = txn.bring_to(state)
        records = txn.logged()
        other = producer_id + id_delta, epoch + epoch_delta

        assert txn.add(B, producer=other) is error
        assert txn.end(COMMIT, producer=other) is error
        assert txn.end(ABORT, producer=other) is error
        assert (txn.metadata().state, txn.logged()) == (state, records)

    @pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
    def test_nothing_is_added_after_the_decision(self, txn: TransactionHarness, state: S) -> None:
        producer = txn.bring_to(state)

        assert txn.add(B, producer=producer) is Errors.CONCURRENT_TRANSACTIONS
        assert txn.metadata().topic_partitions == {A}

    @pytest.mark.parametrize("state", [S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
    def test_next_transaction_begins_after_the_last(
        self, txn: TransactionHarness, state: S
    ) -> None:
        producer = txn.bring_to(state)

        assert txn.add(B, producer=producer) is Errors.NONE
        assert (txn.metadata().state, txn.metadata().topic_partitions) == (S.ONGOING, {B})

    def test_pending_change_comes_first(self, txn: TransactionHarness) -> None:
        producer = txn.started()
        txn.metadata().prepare_add_partitions({B}, 0)

        assert txn.add(B, producer=producer) is Errors.CONCURRENT_TRANSACTIONS
        assert txn.end(COMMIT, producer=producer) is Errors.CONCURRENT_TRANSACTIONS
        assert txn.init().error is Errors.CONCURRENT_TRANSACTIONS


class TestVerify:
    def test_partitions_of_the_transaction_and_others(self, txn: TransactionHarness) -> None:
        producer = txn.started(A)

        assert txn.verify(A, B, producer=producer) == [Errors.NONE, Errors.TRANSACTION_ABORTABLE]
        assert txn.metadata().topic_partitions == {A}

    def test_errors_are_those_of_adding(self, txn: TransactionHarness) -> None:
        producer_id, epoch = txn.started(A)

        assert txn.verify(A, producer=(1, 0), name="") == [Errors.INVALID_REQUEST]
        assert txn.verify(A, producer=(1, 0), name="unknown") == [
            Errors.INVALID_PRODUCER_ID_MAPPING
        ]
        assert txn.verify(A, producer=(1, epoch)) == [Errors.INVALID_PRODUCER_ID_MAPPING]
        assert txn.verify(A, producer=(producer_id, epoch + 1)) == [Errors.PRODUCER_FENCED]
        txn.end(COMMIT, producer=(producer_id, epoch))
        assert txn.verify(A, producer=(producer_id, epoch)) == [Errors.CONCURRENT_TRANSACTIONS]
        txn.deliver()
        assert txn.verify(A, producer=(producer_id, epoch)) == [Errors.TRANSACTION_ABORTABLE]


class TestEndTransaction:
    @pytest.mark.parametrize(
        ("result", "prepare", "complete"),
        [
            (COMMIT, S.PREPARE_COMMIT, S.COMPLETE_COMMIT),
            (ABORT, S.PREPARE_ABORT, S.COMPLETE_ABORT),
        ],
    )
    def test_decision_then_markers_then_completion(
        self, txn: TransactionHarness, result: TransactionResult, prepare: S, complete: S
    ) -> None:
        producer = txn.started(A, B)

        assert txn.end(result, producer=producer) is Errors.NONE
        assert txn.metadata().state is prepare
        (request,) = txn.deliver()

        (marker,) = request.markers
        assert partitions_of(request) == [A, B]
        assert (marker.producer_id, marker.producer_epoch) == producer
        assert (marker.transaction_result, marker.coordinator_epoch) == (result is COMMIT, 0)
        assert txn.metadata().state is complete
        assert [state for _, state in txn.logged()] == [S.EMPTY, S.ONGOING, prepare, complete]

    @pytest.mark.parametrize(
        ("state", "result", "error"),
        [
            (S.EMPTY, COMMIT, Errors.INVALID_TXN_STATE),
            (S.EMPTY, ABORT, Errors.INVALID_TXN_STATE),
            # Their completion is pending, which is looked at first.
            (S.PREPARE_COMMIT, COMMIT, Errors.CONCURRENT_TRANSACTIONS),
            (S.PREPARE_COMMIT, ABORT, Errors.CONCURRENT_TRANSACTIONS),
            (S.PREPARE_ABORT, ABORT, Errors.CONCURRENT_TRANSACTIONS),
            (S.PREPARE_ABORT, COMMIT, Errors.CONCURRENT_TRANSACTIONS),
            (S.COMPLETE_COMMIT, COMMIT, Errors.NONE),
            (S.COMPLETE_COMMIT, ABORT, Errors.INVALID_TXN_STATE),
            (S.COMPLETE_ABORT, ABORT, Errors.NONE),
            (S.COMPLETE_ABORT, COMMIT, Errors.INVALID_TXN_STATE),
        ],
    )
    def test_what_is_decided_stays(
        self, txn: TransactionHarness, state: S, result: TransactionResult, error: Errors
    ) -> None:
        producer = txn.bring_to(state)
        records = txn.logged()

        assert txn.end(result, producer=producer) is error
        assert (txn.metadata().state, txn.logged()) == (state, records)

    @pytest.mark.parametrize(
        ("state", "result", "error"),
        [
            (S.PREPARE_COMMIT, COMMIT, Errors.CONCURRENT_TRANSACTIONS),
            (S.PREPARE_COMMIT, ABORT, Errors.INVALID_TXN_STATE),
            (S.PREPARE_ABORT, ABORT, Errors.CONCURRENT_TRANSACTIONS),
            (S.PREPARE_ABORT, COMMIT, Errors.INVALID_TXN_STATE),
        ],
    )
    def test_contradiction_is_refused_between_decision_and_markers(
        self, txn: TransactionHarness, state: S, result: TransactionResult, error: Errors
    ) -> None:
        producer = txn.bring_to(state)
        txn.metadata().pending_state = None

        assert txn.end(result, producer=producer) is error
        assert txn.metadata().state is state

    @pytest.mark.parametrize("name", [None, ""])
    def test_transactional_id_is_needed(self, txn: TransactionHarness, name: str | None) -> None:
        assert txn.end(COMMIT, producer=(1, 0), name=name) is Errors.INVALID_REQUEST

    def test_unknown_transactional_id(self, txn: TransactionHarness) -> None:
        assert txn.end(COMMIT, producer=(1, 0)) is Errors.INVALID_PRODUCER_ID_MAPPING


class TestTimeouts:
    def test_transaction_is_aborted_after_its_time(self, txn: TransactionHarness) -> None:
        producer = txn.started(A)

        txn.time.sleep(TIMEOUT_MS)
        assert txn.metadata().state is S.ONGOING
        txn.time.sleep(TIMEOUT_MS)

        assert txn.metadata().state is S.PREPARE_ABORT
        (request,) = txn.deliver()
        assert request.markers[0].producer_epoch == producer[1] + 1
        assert txn.metadata().state is S.COMPLETE_ABORT
        assert txn.add(A, producer=producer) is Errors.PRODUCER_FENCED
        assert txn.end(COMMIT, producer=producer) is Errors.PRODUCER_FENCED

    @pytest.mark.parametrize("state", [s for s in REACHABLE if s is not S.ONGOING])
    def test_other_states_do_not_time_out(self, txn: TransactionHarness, state: S) -> None:
        txn.bring_to(state)

        txn.time.sleep(10 * TIMEOUT_MS)

        assert txn.metadata().state is state

    def test_pending_change_is_not_disturbed(self, txn: TransactionHarness) -> None:
        txn.started(A)
        txn.metadata().prepare_abort_or_commit(S.PREPARE_COMMIT, 0)

        txn.time.sleep(10 * TIMEOUT_MS)

        assert txn.metadata().pending_state is S.PREPARE_COMMIT

    def test_fence_that_could_not_be_written_is_tried_again_at_the_same_epoch(
        self, txn: TransactionHarness
    ) -> None:
        producer = txn.started(A)
        txn.follow(LOG)

        txn.time.sleep(2 * TIMEOUT_MS)

        assert (txn.metadata().state, txn.metadata().pending_state) == (S.ONGOING, None)
        assert txn.metadata().has_failed_epoch_fence
        txn.lead(LOG, leader_epoch=2, partition_epoch=2)
        txn.time.sleep(TIMEOUT_MS)
        assert txn.metadata().state is S.PREPARE_ABORT
        assert txn.metadata().producer_epoch == producer[1] + 1


class TestAdministration:
    def test_description_of_an_open_transaction(self, txn: TransactionHarness) -> None:
        producer = txn.started(A, B)

        found = txn.coordinator.handle_describe_transactions(TXN_ID)

        assert (found.error, found.state) == (Errors.NONE, S.ONGOING)
        assert (found.producer_id, found.producer_epoch) == producer
        assert (found.timeout_ms, found.start_timestamp) == (TIMEOUT_MS, txn.time.milliseconds())
        assert found.topic_partitions == {A, B}

    @pytest.mark.parametrize(
        ("name", "error"),
        [("", Errors.INVALID_REQUEST), ("unknown", Errors.TRANSACTIONAL_ID_NOT_FOUND)],
    )
    def test_description_of_what_is_not_there(
        self, txn: TransactionHarness, name: str, error: Errors
    ) -> None:
        assert txn.coordinator.handle_describe_transactions(name).error is error

    def test_description_elsewhere(self, txn: TransactionHarness) -> None:
        txn.started()
        txn.coordinator.on_resignation(0, 1)

        assert txn.coordinator.handle_describe_transactions(TXN_ID).error is Errors.NOT_COORDINATOR

    def test_listing_by_producer_state_and_duration(self, txn: TransactionHarness) -> None:
        txn.started()
        txn.init("idle")
        txn.time.sleep(100)

        def names(**filters) -> list[str]:
            wanted = {"producer_ids": (), "state_names": (), "min_duration_ms": -1, **filters}
            listing = txn.coordinator.handle_list_transactions(**wanted)
            assert listing.error is Errors.NONE
            return sorted(name for name, _, _ in listing.transactions)

        assert names() == ["idle", TXN_ID]
        assert names(producer_ids={1000}) == [TXN_ID]
        assert names(state_names={"Empty"}) == ["idle"]
        assert names(state_names={"Ongoing"}, min_duration_ms=99) == [TXN_ID]
        assert names(state_names={"Ongoing"}, min_duration_ms=100) == []
        assert names(state_names={"Nonsense"}) == []

    def test_unknown_state_filters_are_named(self, txn: TransactionHarness) -> None:
        listing = txn.coordinator.handle_list_transactions(
            producer_ids=(), state_names={"Nonsense", "Empty"}, min_duration_ms=-1
        )

        assert listing.unknown_states == ("Nonsense",)

    def test_nothing_is_known_after_shutdown(self, make_transactions: MakeTransactions) -> None:
        txn = make_transactions()
        txn.coordinator.shutdown()

        described = txn.coordinator.handle_describe_transactions(TXN_ID)
        listed = txn.coordinator.handle_list_transactions(
            producer_ids=(), state_names=(), min_duration_ms=-1
        )

        assert described.error is listed.error is Errors.COORDINATOR_NOT_AVAILABLE
