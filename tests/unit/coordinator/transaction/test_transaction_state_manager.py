from __future__ import annotations

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord
from kafkapy.coordinator.transaction.transaction_metadata import IllegalTransitionError
from kafkapy.coordinator.transaction.transaction_result import TransactionResult
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.coordinator.transaction.transaction_state_manager import coordinator_error
from kafkapy.storage.append_origin import AppendOrigin
from tests.unit.coordinator.transaction.conftest import MakeTransactions
from tests.unit.coordinator.transaction.harness import (
    LOG,
    TXN_ID,
    A,
    B,
    TransactionHarness,
    partitions_of,
)

S = TransactionState
EXPIRATION_MS = 100_000
INTERVAL_MS = 20_000


class TestLoading:
    @pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
    def test_transaction_is_as_it_was(self, txn: TransactionHarness, state: S) -> None:
        producer = txn.bring_to(state)
        before = txn.metadata()

        txn.fail_over()

        after = txn.metadata()
        assert after is not before
        assert (after.state, after.topic_partitions) == (state, before.topic_partitions)
        assert (after.producer_id, after.producer_epoch) == producer
        assert after.txn_timeout_ms == before.txn_timeout_ms
        assert after.txn_start_timestamp == before.txn_start_timestamp
        assert after.txn_last_update_timestamp == before.txn_last_update_timestamp

    @pytest.mark.parametrize(
        ("state", "complete", "commits"),
        [
            (S.PREPARE_COMMIT, S.COMPLETE_COMMIT, True),
            (S.PREPARE_ABORT, S.COMPLETE_ABORT, False),
        ],
    )
    def test_decision_is_carried_out_under_the_new_epoch(
        self, txn: TransactionHarness, state: S, complete: S, commits: bool
    ) -> None:
        txn.bring_to(state)

        txn.fail_over(coordinator_epoch=5)
        (request,) = txn.deliver()

        assert partitions_of(request) == [A]
        assert request.markers[0].transaction_result is commits
        assert request.markers[0].coordinator_epoch == 5
        assert txn.metadata().state is complete

    def test_open_transaction_goes_on(self, txn: TransactionHarness) -> None:
        producer = txn.started(A)

        txn.fail_over()

        assert txn.add(B, producer=producer) is Errors.NONE
        assert txn.end(TransactionResult.COMMIT, producer=producer) is Errors.NONE

    def test_log_larger_than_the_buffer_is_read_in_parts(
        self, make_transactions: MakeTransactions
    ) -> None:
        txn = make_transactions(transaction_log_load_buffer_size=1)
        for number in range(20):
            txn.init(f"id-{number}")

        txn.fail_over()

        assert len(txn.state_manager.all_transactions()) == 20

    def test_records_nobody_can_read_are_skipped(self, txn: TransactionHarness) -> None:
        txn.init()
        txn.broker.replica_manager.append_records(
            timeout_ms=1000,
            required_acks=1,
            internal_topics_allowed=True,
            origin=AppendOrigin.COORDINATOR,
            entries_per_partition={
                LOG: MemoryRecords.with_records(
                    SimpleRecord(0, b"\x00\x09new key", b"value"),
                    SimpleRecord(0, b"\x00\x00\x00\x01x", b"\x00\x63"),
                    SimpleRecord(0, b"\x00", None),
                )
            },
            response_callback=lambda _: None,
        )

        txn.fail_over()

        assert [m.transactional_id for m in txn.state_manager.all_transactions()] == [TXN_ID]

    def test_requests_wait_while_it_lasts(self, txn: TransactionHarness) -> None:
        producer = txn.started()
        tasks = []
        txn.state_manager._scheduler = _Deferred(tasks)
        txn.fail_over()

        assert txn.init().error is Errors.COORDINATOR_LOAD_IN_PROGRESS
        assert txn.add(B, producer=producer) is Errors.COORDINATOR_LOAD_IN_PROGRESS
        assert txn.state_manager.is_loading()
        assert (
            txn.coordinator.handle_list_transactions(
                producer_ids=(), state_names=(), min_duration_ms=-1
            ).error
            is Errors.COORDINATOR_LOAD_IN_PROGRESS
        )

        tasks.pop()()

        assert txn.add(B, producer=producer) is Errors.NONE

    def test_resignation_during_the_load_wins(self, txn: TransactionHarness) -> None:
        txn.bring_to(S.PREPARE_COMMIT)
        tasks = []
        txn.state_manager._scheduler = _Deferred(tasks)
        txn.fail_over(coordinator_epoch=1)

        txn.coordinator.on_resignation(0, 1)
        tasks.pop()()

        assert txn.init().error is Errors.NOT_COORDINATOR
        assert txn.deliver() == []


class _Deferred:
    """A scheduler whose tasks the test runs."""

    def __init__(self, tasks: list) -> None:
        self._tasks = tasks

    def schedule_once(self, name, task, delay_ms=0) -> None:
        self._tasks.append(task)


class TestResignation:
    def test_every_request_is_sent_elsewhere(self, txn: TransactionHarness) -> None:
        producer = txn.started()

        txn.coordinator.on_resignation(0, None)

        assert txn.init().error is Errors.NOT_COORDINATOR
        assert txn.add(B, producer=producer) is Errors.NOT_COORDINATOR
        assert txn.end(TransactionResult.COMMIT, producer=producer) is Errors.NOT_COORDINATOR
        assert txn.verify(A, producer=producer) == [Errors.NOT_COORDINATOR]

    def test_markers_not_sent_yet_are_left_to_the_next(self, txn: TransactionHarness) -> None:
        txn.bring_to(S.PREPARE_COMMIT)

        txn.coordinator.on_resignation(0, 1)

        assert txn.deliver() == []

    def test_answers_that_come_too_late_change_nothing(self, txn: TransactionHarness) -> None:
        txn.bring_to(S.PREPARE_COMMIT)
        (sender,) = txn.senders
        outgoing = sender.generate_request()
        assert outgoing is not None
        txn.coordinator.on_resignation(0, 1)
        records = txn.logged()

        outgoing.handler(None)
        txn.back_off()

        assert (txn.deliver(), txn.logged()) == ([], records)


class TestAppending:
    def test_lost_leadership_is_told_and_leaves_the_state(self, txn: TransactionHarness) -> None:
        producer = txn.started(A)
        txn.follow(LOG)

        assert txn.add(B, producer=producer) is Errors.NOT_COORDINATOR
        assert txn.end(TransactionResult.COMMIT, producer=producer) is Errors.NOT_COORDINATOR
        metadata = txn.metadata()
        assert (metadata.state, metadata.pending_state) == (S.ONGOING, None)
        assert metadata.topic_partitions == {A}

    def test_change_of_an_earlier_term_is_not_written(self, txn: TransactionHarness) -> None:
        txn.started(A)
        transit = txn.metadata().prepare_add_partitions({B}, 0)
        txn.fail_over(coordinator_epoch=1)
        errors: list[Errors] = []
        records = txn.logged()

        txn.state_manager.append_transaction_to_log(TXN_ID, 0, transit, errors.append)

        assert errors == [Errors.NOT_COORDINATOR]
        assert (txn.logged(), txn.metadata().topic_partitions) == (records, {A})

    def test_change_that_was_not_prepared_never_becomes_the_state(
        self, txn: TransactionHarness
    ) -> None:
        txn.started(A)
        transit = txn.metadata().prepare_add_partitions({B}, 0)
        txn.metadata().pending_state = None

        with pytest.raises(IllegalTransitionError):
            txn.state_manager.append_transaction_to_log(TXN_ID, 0, transit, lambda _: None)

        assert txn.metadata().topic_partitions == {A}

    @pytest.mark.parametrize(
        ("append_error", "error"),
        [
            (Errors.NONE, Errors.NONE),
            (Errors.UNKNOWN_TOPIC_OR_PARTITION, Errors.COORDINATOR_NOT_AVAILABLE),
            (Errors.NOT_ENOUGH_REPLICAS, Errors.COORDINATOR_NOT_AVAILABLE),
            (Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Errors.COORDINATOR_NOT_AVAILABLE),
            (Errors.REQUEST_TIMED_OUT, Errors.COORDINATOR_NOT_AVAILABLE),
            (Errors.NOT_LEADER_OR_FOLLOWER, Errors.NOT_COORDINATOR),
            (Errors.KAFKA_STORAGE_ERROR, Errors.NOT_COORDINATOR),
            (Errors.MESSAGE_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
            (Errors.RECORD_LIST_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
            (Errors.INVALID_RECORD, Errors.INVALID_RECORD),
        ],
    )
    def test_errors_as_clients_are_told(self, append_error: Errors, error: Errors) -> None:
        assert coordinator_error(append_error) is error


class TestExpiration:
    @pytest.fixture
    @staticmethod
    def txn(make_transactions: MakeTransactions) -> TransactionHarness:
        return make_transactions(
            transactional_id_expiration_ms=EXPIRATION_MS,
            remove_expired_transactional_ids_interval_ms=INTERVAL_MS,
            abort_timed_out_transactions_interval_ms=EXPIRATION_MS,
        )

    @pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
    def test_idle_id_is_forgotten_with_a_tombstone(self, txn: TransactionHarness, state: S) -> None:
        txn.bring_to(state)

        txn.time.sleep(EXPIRATION_MS - 1)
        assert txn.metadata().state is state
        txn.time.sleep(INTERVAL_MS)

        assert txn.state_manager.get_transaction_state(TXN_ID) is None
        assert txn.logged()[-1] == (TXN_ID, None)
        txn.fail_over()
        assert txn.state_manager.get_transaction_state(TXN_ID) is None

    def test_id_in_use_is_kept(self, txn: TransactionHarness) -> None:
        txn.init()
        for _ in range(3):
            txn.time.sleep(EXPIRATION_MS // 2)
            txn.init()

        assert txn.metadata().producer_epoch == 3

    @pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
    def test_undelivered_transaction_is_kept(self, txn: TransactionHarness, state: S) -> None:
        txn.bring_to(state)

        txn.time.sleep(2 * EXPIRATION_MS)

        assert txn.metadata().state is state

    def test_id_is_kept_when_its_tombstone_is_not_written(self, txn: TransactionHarness) -> None:
        txn.init()
        txn.follow(LOG)

        txn.time.sleep(2 * EXPIRATION_MS)

        assert (txn.metadata().state, txn.metadata().pending_state) == (S.EMPTY, None)

    def test_many_ids_go_in_batches_that_fit(self, txn: TransactionHarness) -> None:
        # 50 tombstones of 30 kB are more than one batch may hold.
        for number in range(50):
            txn.init(f"{number}-" + "x" * 30_000)
        txn.time.sleep(EXPIRATION_MS - INTERVAL_MS)

        txn.time.sleep(INTERVAL_MS)
        after_first_round = len(txn.state_manager.all_transactions())
        txn.time.sleep(INTERVAL_MS)

        assert 0 < after_first_round < 50
        assert txn.state_manager.all_transactions() == []


@pytest.mark.parametrize(
    ("name", "count", "partition"),
    # Java: Utils.abs("...".hashCode()) % count; the third hashes to Integer.MIN_VALUE.
    [("txn", 50, 6), ("", 50, 0), ("polygenelubricants", 50, 0), ("my-transactional-id", 7, 5)],
)
def test_partition_is_javas(
    make_transactions: MakeTransactions, name: str, count: int, partition: int
) -> None:
    txn = make_transactions()
    txn.state_manager.startup(lambda: count)

    assert txn.state_manager.partition_for(name) == partition
