"""The sticky assignment of members that all subscribe to the same topics."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from kafkapy.clients.consumer.assignors.member_data import Ownership
from kafkapy.common.types import TopicPartition


class ConstrainedAssignmentBuilder:
    """Gives every member its quota in one pass: first of what it owns, then of what is left.

    With n partitions and m members, n mod m members get ceil(n / m) and the others floor(n / m).
    For one use by one thread.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor
    """

    def __init__(self, partitions_per_topic: Mapping[str, int], ownership: Ownership) -> None:
        self._partitions = [
            TopicPartition(topic, partition)
            for topic, count in sorted(partitions_per_topic.items())
            for partition in range(count)
        ]
        self._owned = ownership.owned
        self._assignment: dict[str, list[TopicPartition]] = {name: [] for name in ownership.owned}
        self._min_quota, self._members_above_min = divmod(len(self._partitions), len(self._owned))

    def build(self) -> dict[str, list[TopicPartition]]:
        below_min: list[str] = []
        at_min: list[str] = []
        above_min = 0
        existing = set(self._partitions)
        for member in sorted(self._owned):
            owned = [partition for partition in self._owned[member] if partition in existing]
            if len(owned) > self._min_quota and above_min < self._members_above_min:
                kept = owned[: self._min_quota + 1]
                above_min += 1
            else:
                kept = owned[: self._min_quota]
                (at_min if len(kept) == self._min_quota else below_min).append(member)
            self._assignment[member] += kept
        self._assign_rest(below_min, at_min, self._members_above_min - above_min)
        return self._assignment

    def _assign_rest(self, below_min: list[str], at_min: list[str], may_exceed: int) -> None:
        """Round robin over the members below the minimum, then one more each to `may_exceed` of
        those at it."""
        kept = {partition for partitions in self._assignment.values() for partition in partitions}
        unfilled = deque(below_min)
        filled = deque(at_min)
        for partition in self._partitions:
            if partition in kept:
                continue
            if unfilled:
                member = unfilled.popleft()
                self._assignment[member].append(partition)
                if len(self._assignment[member]) < self._min_quota:
                    unfilled.append(member)
                else:
                    filled.append(member)
            else:
                assert may_exceed > 0, "more partitions than quotas"
                may_exceed -= 1
                self._assignment[filled.popleft()].append(partition)
