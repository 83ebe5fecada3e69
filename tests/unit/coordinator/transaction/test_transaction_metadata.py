import dataclasses
from collections.abc import Callable

import pytest

from kafkapy.common.errors import ProducerFencedError
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.transaction_metadata import (
    IllegalTransitionError,
    TransactionMetadata,
    TxnTransitMetadata,
)
from kafkapy.coordinator.transaction.transaction_state import (
    VALID_PREVIOUS_STATES,
    TransactionState,
)

S = TransactionState
NOW = 1_000
LATER = 2_000
P = TopicPartition("t", 0)
Q = TopicPartition("t", 1)
MAX_EPOCH = 32767

# How each state is asked for.
PREPARE: dict[TransactionState, Callable[[TransactionMetadata], TxnTransitMetadata]] = {
    S.EMPTY: lambda m: m.prepare_increment_producer_epoch(500, None, LATER),
    S.ONGOING: lambda m: m.prepare_add_partitions({Q}, LATER),
    S.PREPARE_COMMIT: lambda m: m.prepare_abort_or_commit(S.PREPARE_COMMIT, LATER),
    S.PREPARE_ABORT: lambda m: m.prepare_abort_or_commit(S.PREPARE_ABORT, LATER),
    S.COMPLETE_COMMIT: lambda m: m._prepare_transition_to(S.COMPLETE_COMMIT, update_timestamp=NOW),
    S.COMPLETE_ABORT: lambda m: m._prepare_transition_to(S.COMPLETE_ABORT, update_timestamp=NOW),
    S.DEAD: lambda m: m.prepare_dead(),
    S.PREPARE_EPOCH_FENCE: lambda m: m.prepare_fence_producer_epoch(),
}
STEPS = [(source, target) for source in S for target in S]
LEGAL = [step for step in STEPS if step[0] in VALID_PREVIOUS_STATES[step[1]]]
ILLEGAL = [step for step in STEPS if step not in LEGAL]


def metadata(state: TransactionState = S.EMPTY, **fields) -> TransactionMetadata:
    has_transaction = state in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT)
    defaults = {
        "producer_id": 7,
        "producer_epoch": 3,
        "txn_timeout_ms": 500,
        "topic_partitions": {P} if has_transaction else (),
        "txn_start_timestamp": -1 if state is S.EMPTY else NOW,
        "txn_last_update_timestamp": NOW,
    }
    return TransactionMetadata("id", state=state, **{**defaults, **fields})


def snapshot(m: TransactionMetadata) -> dict[str, object]:
    return {
        name: set(value) if isinstance(value := getattr(m, name), set) else value
        for name in m.__slots__
        if name != "lock"
    }


@pytest.mark.parametrize(("source", "target"), LEGAL)
def test_legal_step_is_prepared_and_changes_nothing_else_yet(source: S, target: S) -> None:
    m = metadata(source)
    before = snapshot(m)

    transit = PREPARE[target](m)

    assert transit.txn_state is target
    assert snapshot(m) == {**before, "pending_state": target}


@pytest.mark.parametrize(("source", "target"), ILLEGAL)
def test_illegal_step_raises_and_changes_nothing(source: S, target: S) -> None:
    m = metadata(source)
    before = snapshot(m)

    with pytest.raises(IllegalTransitionError):
        PREPARE[target](m)

    assert snapshot(m) == before


def test_the_table_is_kafkas() -> None:
    assert {target.label: {s.label for s in VALID_PREVIOUS_STATES[target]} for target in S} == {
        "Empty": {"Empty", "CompleteCommit", "CompleteAbort"},
        "Ongoing": {"Ongoing", "Empty", "CompleteCommit", "CompleteAbort"},
        "PrepareCommit": {"Ongoing"},
        "PrepareAbort": {"Ongoing", "PrepareEpochFence"},
        "CompleteCommit": {"PrepareCommit"},
        "CompleteAbort": {"PrepareAbort"},
        "Dead": {"Empty", "CompleteCommit", "CompleteAbort"},
        "PrepareEpochFence": {"Ongoing"},
    }
    assert [s.value for s in S] == list(range(8))


@pytest.mark.parametrize("target", S)
def test_no_step_is_prepared_while_another_is_pending(target: S) -> None:
    m = metadata(S.ONGOING)
    m.prepare_add_partitions({Q}, LATER)
    before = snapshot(m)

    with pytest.raises(IllegalTransitionError):
        PREPARE[target](m)

    assert snapshot(m) == before


def test_transaction_runs_through_its_states() -> None:
    m = metadata()

    m.complete_transition_to(m.prepare_add_partitions({P}, 1_100))
    m.complete_transition_to(m.prepare_add_partitions({Q}, 1_200))

    assert (m.state, m.topic_partitions) == (S.ONGOING, {P, Q})
    assert (m.txn_start_timestamp, m.txn_last_update_timestamp) == (1_100, 1_200)

    m.complete_transition_to(m.prepare_abort_or_commit(S.PREPARE_COMMIT, 1_300))
    m.remove_partition(P)
    m.complete_transition_to(m.prepare_complete(1_400))

    assert (m.state, m.topic_partitions, m.pending_state) == (S.COMPLETE_COMMIT, set(), None)

    m.complete_transition_to(m.prepare_add_partitions({P}, 1_500))

    assert (m.txn_start_timestamp, m.topic_partitions) == (1_500, {P})


@pytest.mark.parametrize("state", [S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT])
def test_partition_leaves_only_a_transaction_that_is_decided(state: S) -> None:
    m = metadata(state)
    before = snapshot(m)

    with pytest.raises(IllegalTransitionError):
        m.remove_partition(P)

    assert snapshot(m) == before


@pytest.mark.parametrize(
    ("source", "target", "change"),
    [
        (S.EMPTY, S.EMPTY, {"producer_epoch": 5}),
        (S.EMPTY, S.EMPTY, {"topic_partitions": frozenset({P})}),
        (S.EMPTY, S.EMPTY, {"txn_start_timestamp": NOW}),
        (S.ONGOING, S.ONGOING, {"producer_epoch": 4}),
        (S.ONGOING, S.ONGOING, {"producer_id": 8}),
        (S.ONGOING, S.ONGOING, {"topic_partitions": frozenset({Q})}),
        (S.ONGOING, S.ONGOING, {"txn_timeout_ms": 501}),
        (S.ONGOING, S.PREPARE_COMMIT, {"topic_partitions": frozenset()}),
        (S.ONGOING, S.PREPARE_ABORT, {"txn_start_timestamp": LATER}),
        (S.ONGOING, S.PREPARE_ABORT, {"txn_state": S.PREPARE_COMMIT}),
        (S.PREPARE_COMMIT, S.COMPLETE_COMMIT, {"producer_epoch": 4}),
        (S.PREPARE_ABORT, S.COMPLETE_ABORT, {"txn_start_timestamp": -1}),
        (S.ONGOING, S.PREPARE_EPOCH_FENCE, {}),
        (S.EMPTY, S.DEAD, {}),
    ],
)
def test_change_that_does_not_follow_is_refused_and_leaves_no_trace(
    source: S, target: S, change: dict[str, object]
) -> None:
    m = metadata(source)
    transit = dataclasses.replace(PREPARE[target](m), **change)
    before = snapshot(m)

    with pytest.raises(IllegalTransitionError):
        m.complete_transition_to(transit)

    assert snapshot(m) == before


def test_change_that_was_not_prepared_is_refused() -> None:
    m = metadata()
    transit = m.prepare_add_partitions({P}, LATER)
    m.pending_state = None

    with pytest.raises(IllegalTransitionError):
        m.complete_transition_to(transit)


class TestEpochs:
    def test_new_producer_begins_at_epoch_0(self) -> None:
        m = metadata(producer_epoch=-1)

        m.complete_transition_to(m.prepare_increment_producer_epoch(900, None, LATER))

        assert (m.producer_epoch, m.last_producer_epoch, m.txn_timeout_ms) == (0, -1, 900)

    @pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
    def test_successor_without_expectations_forgets_its_predecessor(self, state: S) -> None:
        m = metadata(state, last_producer_epoch=2)

        m.complete_transition_to(m.prepare_increment_producer_epoch(500, None, LATER))

        assert (m.state, m.producer_epoch, m.last_producer_epoch) == (S.EMPTY, 4, -1)

    def test_producer_that_names_its_epoch_gets_the_next(self) -> None:
        m = metadata()

        m.complete_transition_to(m.prepare_increment_producer_epoch(500, 3, LATER))

        assert (m.producer_epoch, m.last_producer_epoch) == (4, 3)

    def test_repeated_request_gets_the_same_epoch_again(self) -> None:
        m = metadata()
        m.complete_transition_to(m.prepare_increment_producer_epoch(500, 3, LATER))

        m.complete_transition_to(m.prepare_increment_producer_epoch(500, 3, LATER))

        assert (m.producer_epoch, m.last_producer_epoch) == (4, 3)

    @pytest.mark.parametrize("expected", [0, 2, 4])
    def test_any_other_epoch_is_fenced(self, expected: int) -> None:
        m = metadata()
        before = snapshot(m)

        with pytest.raises(ProducerFencedError):
            m.prepare_increment_producer_epoch(500, expected, LATER)

        assert snapshot(m) == before

    @pytest.mark.parametrize("epoch", [MAX_EPOCH - 1, MAX_EPOCH])
    def test_exhausted_epoch_cannot_be_raised(self, epoch: int) -> None:
        m = metadata(producer_epoch=epoch)

        assert m.is_producer_epoch_exhausted
        with pytest.raises(IllegalTransitionError):
            m.prepare_increment_producer_epoch(500, None, LATER)

    @pytest.mark.parametrize(("record", "last"), [(True, MAX_EPOCH - 1), (False, -1)])
    def test_rotation_begins_anew_with_another_id(self, record: bool, last: int) -> None:
        m = metadata(producer_epoch=MAX_EPOCH - 1)

        m.complete_transition_to(
            m.prepare_producer_id_rotation(8, 500, LATER, record_last_epoch=record)
        )

        assert (m.producer_id, m.producer_epoch) == (8, 0)
        assert (m.last_producer_id, m.last_producer_epoch) == (7, last)

    @pytest.mark.parametrize("state", [S.ONGOING, S.PREPARE_ABORT, S.PREPARE_COMMIT])
    def test_id_is_not_rotated_within_a_transaction(self, state: S) -> None:
        with pytest.raises(IllegalTransitionError):
            metadata(state).prepare_producer_id_rotation(8, 500, LATER, record_last_epoch=True)

    def test_fence_takes_the_last_epoch_but_not_one_more(self) -> None:
        last_but_one = metadata(S.ONGOING, producer_epoch=MAX_EPOCH - 1)

        assert last_but_one.prepare_fence_producer_epoch().producer_epoch == MAX_EPOCH
        with pytest.raises(IllegalTransitionError):
            metadata(S.ONGOING, producer_epoch=MAX_EPOCH).prepare_fence_producer_epoch()

    def test_fence_that_failed_does_not_use_up_another_epoch(self) -> None:
        m = metadata(S.ONGOING)
        m.has_failed_epoch_fence = True

        assert m.prepare_fence_producer_epoch().producer_epoch == 3

    def test_decision_in_the_log_ends_the_failed_fence(self) -> None:
        m = metadata(S.PREPARE_ABORT)
        m.has_failed_epoch_fence = True

        m.prepare_complete(LATER)

        assert not m.has_failed_epoch_fence

    def test_id_that_never_reached_the_log_may_expire(self) -> None:
        assert metadata(producer_epoch=-1).prepare_dead().txn_state is S.DEAD
