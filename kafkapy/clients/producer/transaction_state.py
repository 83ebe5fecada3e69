"""The states of a producer's transactions."""

from __future__ import annotations

from enum import Enum, auto


class TransactionState(Enum):
    """Ports: org.apache.kafka.clients.producer.internals.TransactionManager.State"""

    UNINITIALIZED = auto()
    INITIALIZING = auto()
    READY = auto()
    IN_TRANSACTION = auto()
    PREPARED_TRANSACTION = auto()
    COMMITTING_TRANSACTION = auto()
    ABORTING_TRANSACTION = auto()
    ABORTABLE_ERROR = auto()
    FATAL_ERROR = auto()

    def may_follow(self, source: TransactionState) -> bool:
        return self is TransactionState.FATAL_ERROR or source in _SOURCES[self]


_S = TransactionState
_SOURCES = {
    _S.UNINITIALIZED: {_S.READY, _S.ABORTABLE_ERROR},
    _S.INITIALIZING: {_S.UNINITIALIZED, _S.ABORTING_TRANSACTION},
    _S.READY: {_S.INITIALIZING, _S.COMMITTING_TRANSACTION, _S.ABORTING_TRANSACTION},
    _S.IN_TRANSACTION: {_S.READY},
    _S.PREPARED_TRANSACTION: {_S.IN_TRANSACTION},
    _S.COMMITTING_TRANSACTION: {_S.IN_TRANSACTION, _S.PREPARED_TRANSACTION},
    _S.ABORTING_TRANSACTION: {
        _S.IN_TRANSACTION,
        _S.PREPARED_TRANSACTION,
        _S.ABORTABLE_ERROR,
    },
    _S.ABORTABLE_ERROR: {
        _S.IN_TRANSACTION,
        _S.COMMITTING_TRANSACTION,
        _S.ABORTABLE_ERROR,
        _S.INITIALIZING,
    },
}
