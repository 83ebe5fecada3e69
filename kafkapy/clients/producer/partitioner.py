"""Which partition a record goes to."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any, Protocol

from kafkapy.clients.cluster import Cluster
from kafkapy.utils.murmur2 import murmur2

# The choice is the accumulator's: it sticks to one partition until that has had a whole batch.
UNKNOWN_PARTITION = -1
_POSITIVE = 0x7FFFFFFF


class Partitioner(Protocol):
    """A partitioner of the user's own. Called by every thread that sends.

    Ports: org.apache.kafka.clients.producer.Partitioner
    """

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
    ) -> int: ...


# kafka-python's form: the serialized key, all partitions, those that have a leader.
PartitionFunction = Callable[[bytes | None, list[int], list[int]], int]


def partition_for_key(key: bytes, num_partitions: int) -> int:
    """The partition that every client of Kafka gives this key."""
    return (murmur2(key) & _POSITIVE) % num_partitions


class BuiltInPartitioner:
    """The partition of one topic that records without a key go to now.

    It changes when about a batch has been written there, so that batches get full and partitions
    get equally much. Guarded by the accumulator's lock.

    Ports: org.apache.kafka.clients.producer.internals.BuiltInPartitioner
    """

    __slots__ = ("_produced_bytes", "_random", "_sticky_batch_size", "_topic", "current")

    def __init__(self, topic: str, sticky_batch_size: int, rng: random.Random) -> None:
        self._topic = topic  # constant after construction
        self._sticky_batch_size = max(1, sticky_batch_size)
        self._random = rng
        self.current = UNKNOWN_PARTITION
        self._produced_bytes = 0

    def partition(self, cluster: Cluster) -> int:
        if self.current == UNKNOWN_PARTITION:
            self.current = self._next_partition(cluster)
        return self.current

    def update(self, appended_bytes: int, cluster: Cluster, *, may_switch: bool) -> None:
        """So much was appended to the current partition.

        Without leave to switch, a partition gets up to twice the size: better one larger batch
        than two that are not full.
        """
        self._produced_bytes += appended_bytes
        produced = self._produced_bytes
        if (produced >= self._sticky_batch_size and may_switch) or (
            produced >= self._sticky_batch_size * 2
        ):
            self._produced_bytes = 0
            self.current = self._next_partition(cluster)

    def _next_partition(self, cluster: Cluster) -> int:
        available = cluster.available_partitions_for_topic(self._topic)
        candidates = available or cluster.partitions_for_topic(self._topic)
        return self._random.choice(candidates).partition


class RoundRobinPartitioner:
    """Each record of a topic goes to its next partition, whatever the key. Thread-safe.

    Ports: org.apache.kafka.clients.producer.RoundRobinPartitioner
    """

    def __init__(self) -> None:
        # Counting is atomic, and so is setting a default.
        self._counters: dict[str, itertools.count[int]] = {}

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
    ) -> int:
        counter = self._counters.get(topic)
        if counter is None:
            counter = self._counters.setdefault(topic, itertools.count())
        available = cluster.available_partitions_for_topic(topic)
        candidates = available or cluster.partitions_for_topic(topic)
        return candidates[next(counter) % len(candidates)].partition


class _FunctionPartitioner:
    """A function of kafka-python's form as a Partitioner."""

    def __init__(self, function: PartitionFunction) -> None:
        self._function = function

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
    ) -> int:
        return self._function(
            key_bytes,
            [info.partition for info in cluster.partitions_for_topic(topic)],
            [info.partition for info in cluster.available_partitions_for_topic(topic)],
        )


def partitioner_of(given: Any) -> Partitioner | None:
    """What a setting holds: a Partitioner, a function, or None for the built-in rules."""
    if given is None or hasattr(given, "partition"):
        partitioner: Partitioner | None = given
        return partitioner
    return _FunctionPartitioner(given)
