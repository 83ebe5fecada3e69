from __future__ import annotations

from enum import IntEnum


class ReplicaState(IntEnum):
    """Where a replica is in its life.

    NEW: can only be told to follow. ONLINE: part of its partition. OFFLINE: its broker or disk
    is gone. DELETION_STARTED, _SUCCESSFUL, _INELIGIBLE: the steps of deleting it.
    NON_EXISTENT: deleted, or never created.

    Ports: kafka.controller.ReplicaState
    """

    NEW = 1
    ONLINE = 2
    OFFLINE = 3
    DELETION_STARTED = 4
    DELETION_SUCCESSFUL = 5
    DELETION_INELIGIBLE = 6
    NON_EXISTENT = 7

    @property
    def valid_previous_states(self) -> frozenset[ReplicaState]:
        return _VALID_PREVIOUS_STATES[self]


_LIVING = frozenset(
    {
        ReplicaState.NEW,
        ReplicaState.ONLINE,
        ReplicaState.OFFLINE,
        ReplicaState.DELETION_INELIGIBLE,
    }
)
_VALID_PREVIOUS_STATES = {
    ReplicaState.NEW: frozenset({ReplicaState.NON_EXISTENT}),
    ReplicaState.ONLINE: _LIVING,
    ReplicaState.OFFLINE: _LIVING,
    ReplicaState.DELETION_STARTED: frozenset({ReplicaState.OFFLINE}),
    ReplicaState.DELETION_SUCCESSFUL: frozenset({ReplicaState.DELETION_STARTED}),
    ReplicaState.DELETION_INELIGIBLE: frozenset(
        {ReplicaState.OFFLINE, ReplicaState.DELETION_STARTED}
    ),
    ReplicaState.NON_EXISTENT: frozenset({ReplicaState.DELETION_SUCCESSFUL}),
}
