from __future__ import annotations

from enum import IntEnum


class PartitionState(IntEnum):
    """Where a partition is in its life.

    NON_EXISTENT: never created, or deleted. NEW: assigned replicas but no leader yet. ONLINE: has
    a leader. OFFLINE: its leader died.

    Ports: kafka.controller.PartitionState
    """

    NEW = 0
    ONLINE = 1
    OFFLINE = 2
    NON_EXISTENT = 3

    @property
    def valid_previous_states(self) -> frozenset[PartitionState]:
        return _VALID_PREVIOUS_STATES[self]


_VALID_PREVIOUS_STATES = {
    PartitionState.NEW: frozenset({PartitionState.NON_EXISTENT}),
    PartitionState.ONLINE: frozenset(
        {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
    ),
    PartitionState.OFFLINE: frozenset(
        {PartitionState.NEW, PartitionState.ONLINE, PartitionState.OFFLINE}
    ),
    PartitionState.NON_EXISTENT: frozenset({PartitionState.OFFLINE}),
}
