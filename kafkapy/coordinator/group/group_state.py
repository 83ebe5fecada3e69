"""The states of a group and the steps between them."""

from enum import Enum


class GroupState(Enum):
    """What a group is doing; the value is the name that clients see.

    Ports: kafka.coordinator.group.GroupState
    """

    EMPTY = "Empty"  # no members; kept while it has offsets
    PREPARING_REBALANCE = "PreparingRebalance"  # waiting for all members to join
    COMPLETING_REBALANCE = "CompletingRebalance"  # waiting for the leader's assignment
    STABLE = "Stable"
    DEAD = "Dead"  # being removed, here or because another broker took over


VALID_PREVIOUS_STATES: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}


class IllegalGroupStateError(Exception):
    """The group's code asked for something that its state does not allow."""
