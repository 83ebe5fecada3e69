"""The states of a transaction and the steps between them."""

from __future__ import annotations

from enum import IntEnum


class TransactionState(IntEnum):
    """The numbers are those of the transaction log, `label` what admin clients are told.

    Ports: kafka.coordinator.transaction.TransactionState
    """

    label: str

    EMPTY = (0, "Empty")  # no transaction since the producer was initialised
    ONGOING = (1, "Ongoing")
    PREPARE_COMMIT = (2, "PrepareCommit")  # decided; markers are being written
    PREPARE_ABORT = (3, "PrepareAbort")
    COMPLETE_COMMIT = (4, "CompleteCommit")
    COMPLETE_ABORT = (5, "CompleteAbort")
    DEAD = (6, "Dead")  # expired; its tombstone is being written
    PREPARE_EPOCH_FENCE = (7, "PrepareEpochFence")  # only ever pending, until the abort begins

    def __new__(cls, number: int, label: str) -> TransactionState:
        state = int.__new__(cls, number)
        state._value_ = number
        state.label = label
        return state

    @staticmethod
    def from_name(name: str) -> TransactionState | None:
        return _BY_LABEL.get(name)

    @staticmethod
    def from_id(number: int) -> TransactionState | None:
        return _BY_ID.get(number)

    @property
    def valid_previous_states(self) -> frozenset[TransactionState]:
        return VALID_PREVIOUS_STATES[self]

    @property
    def is_expiration_allowed(self) -> bool:
        """Whether a transactional id may be forgotten in this state."""
        return self in VALID_PREVIOUS_STATES[TransactionState.DEAD]


_EMPTY = TransactionState.EMPTY
_ONGOING = TransactionState.ONGOING
_COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
_COMPLETE_ABORT = TransactionState.COMPLETE_ABORT

# state -> the states it may be entered from
VALID_PREVIOUS_STATES: dict[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: frozenset({_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT}),
    TransactionState.ONGOING: frozenset({_ONGOING, _EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT}),
    TransactionState.PREPARE_COMMIT: frozenset({_ONGOING}),
    TransactionState.PREPARE_ABORT: frozenset({_ONGOING, TransactionState.PREPARE_EPOCH_FENCE}),
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
    TransactionState.DEAD: frozenset({_EMPTY, _COMPLETE_ABORT, _COMPLETE_COMMIT}),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset({_ONGOING}),
}
_BY_LABEL = {state.label: state for state in TransactionState}
_BY_ID = {int(state): state for state in TransactionState}
