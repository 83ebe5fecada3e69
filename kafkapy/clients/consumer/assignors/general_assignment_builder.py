"""The sticky assignment of members that subscribe to different topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sortedcontainers import SortedList

from kafkapy.clients.consumer.assignors.member_data import Ownership
from kafkapy.clients.consumer.assignors.partition_movements import PartitionMovements
from kafkapy.common.types import TopicPartition


class GeneralAssignmentBuilder:
    """Starts from what members own, gives the rest to whoever has least, then moves partitions one
    by one while that evens the numbers out.

    An assignment that was there already is only given up for a better balanced one. For one use by
    one thread.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor
    """

    def __init__(
        self,
        partitions_per_topic: Mapping[str, int],
        topics_of: Mapping[str, frozenset[str]],
        ownership: Ownership,
    ) -> None:
        self._partitions_per_topic = partitions_per_topic
        self._previous_owner = ownership.previous_owner
        self._topics_of = {
            member: topics & partitions_per_topic.keys() for member, topics in topics_of.items()
        }
        self._members_of: dict[str, list[str]] = {topic: [] for topic in partitions_per_topic}
        for member in sorted(topics_of):
            for topic in self._topics_of[member]:
                self._members_of[topic].append(member)
        # Topics that few can take come first: the others leave more choice for later.
        self._partitions = [
            TopicPartition(topic, partition)
            for topic in sorted(self._members_of, key=lambda t: (len(self._members_of[t]), t))
            for partition in range(partitions_per_topic[topic])
            if self._members_of[topic]
        ]
        self._movements = PartitionMovements()
        # Changed together while building.
        self._assignment: dict[str, list[TopicPartition]] = {member: [] for member in topics_of}
        self._owner: dict[TopicPartition, str] = {}
        self._revocation_required = False
        for member, owned in ownership.owned.items():
            for partition in owned:
                if partition.topic in self._topics_of[member]:
                    self._assignment[member].append(partition)
                    self._owner[partition] = member
                else:
                    self._revocation_required = True
        # Members by the number of their partitions, the fewest first.
        self._by_load: SortedList[tuple[int, str]] = SortedList(
            (len(partitions), member) for member, partitions in self._assignment.items()
        )

    def build(self) -> dict[str, list[TopicPartition]]:
        initializing = not self._owner
        unassigned = [partition for partition in self._partitions if partition not in self._owner]
        for partition in unassigned:
            self._give(partition, self._least_loaded(partition.topic))

        movable = [p for p in self._partitions if len(self._members_of[p.topic]) > 1]
        fixed = self._set_aside_fixed_members()
        before = {member: list(partitions) for member, partitions in self._assignment.items()}
        score_before = _balance_score(before)
        # Moving what is new anyway costs nobody anything: try that alone first.
        if unassigned and not self._revocation_required:
            self._reassign([p for p in unassigned if len(self._members_of[p.topic]) > 1])
        reassigned = self._reassign(movable)
        if reassigned and not initializing and _balance_score(self._assignment) >= score_before:
            self._assignment = before
        return {**self._assignment, **fixed}

    def _set_aside_fixed_members(self) -> dict[str, list[TopicPartition]]:
        """Members that can neither get nor give anything take no part in the balancing."""
        fixed = {}
        for member in list(self._assignment):
            partitions = self._assignment[member]
            can_give = any(len(self._members_of[p.topic]) > 1 for p in partitions)
            if not can_give and len(partitions) >= self._capacity(member):
                self._by_load.remove((len(partitions), member))
                fixed[member] = self._assignment.pop(member)
        return fixed

    def _reassign(self, partitions: Sequence[TopicPartition]) -> bool:
        """Moves partitions until the assignment is balanced or nothing helps any more.

        Each move takes from a member with at least two more than the other has, so it ends.
        """
        performed = False
        modified = True
        while modified:
            modified = False
            for partition in partitions:
                if self._by_load[0][0] >= self._by_load[-1][0] - 1:
                    return performed
                owner = self._owner[partition]
                load = len(self._assignment[owner])
                previous = self._previous_owner.get(partition)
                if (
                    previous in self._assignment
                    and partition.topic in self._topics_of[previous]
                    and load > len(self._assignment[previous]) + 1
                ):
                    target: str = previous
                else:
                    target = self._least_loaded(partition.topic)
                    if load <= len(self._assignment[target]) + 1:
                        continue
                moved = self._movements.partition_to_move(partition, owner, target)
                self._move(moved, target)
                performed = modified = True
        return performed

    def _least_loaded(self, topic: str) -> str:
        return next(m for _, m in self._by_load if topic in self._topics_of[m])

    def _capacity(self, member: str) -> int:
        return sum(self._partitions_per_topic[topic] for topic in self._topics_of[member])

    def _give(self, partition: TopicPartition, member: str) -> None:
        partitions = self._assignment[member]
        self._by_load.remove((len(partitions), member))
        partitions.append(partition)
        self._by_load.add((len(partitions), member))
        self._owner[partition] = member

    def _move(self, partition: TopicPartition, target: str) -> None:
        owner = self._owner[partition]
        partitions = self._assignment[owner]
        self._movements.moved(partition, owner, target)
        self._by_load.remove((len(partitions), owner))
        partitions.remove(partition)
        self._by_load.add((len(partitions), owner))
        self._give(partition, target)


def _balance_score(assignment: Mapping[str, list[TopicPartition]]) -> int:
    """0 when all have the same: the sum of the differences of all pairs of members."""
    loads = sorted(len(partitions) for partitions in assignment.values())
    # In ascending order the i-th of n loads is the greater of i pairs and the lesser of n - 1 - i.
    return sum(load * (2 * index - len(loads) + 1) for index, load in enumerate(loads))
