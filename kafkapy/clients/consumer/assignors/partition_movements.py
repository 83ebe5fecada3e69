"""Which partitions have moved between which members, so that none moves to and fro."""

from __future__ import annotations

from kafkapy.common.types import TopicPartition

_Pair = tuple[str, str]


class PartitionMovements:
    """The moves made so far. When a partition of a topic went from A to B and another is now to go
    from B to A, taking the first one back gives the same numbers and moves nothing.
    For one use by one thread.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor.PartitionMovements
    """

    def __init__(self) -> None:
        self._pair_of: dict[TopicPartition, _Pair] = {}
        # A dict as an ordered set: which partition goes back must not depend on hashing.
        self._moved: dict[tuple[str, _Pair], dict[TopicPartition, None]] = {}

    def partition_to_move(
        self, partition: TopicPartition, source: str, target: str
    ) -> TopicPartition:
        """The partition to take instead, or the same one."""
        reverse = self._moved.get((partition.topic, (target, source)))
        return next(iter(reverse)) if reverse else partition

    def moved(self, partition: TopicPartition, source: str, target: str) -> None:
        known = self._pair_of.pop(partition, None)
        if known is not None:
            del self._moved[(partition.topic, known)][partition]
            source = known[0]
            if source == target:
                return
        pair = (source, target)
        self._pair_of[partition] = pair
        self._moved.setdefault((partition.topic, pair), {})[partition] = None
