import random
from collections import Counter

import pytest

from kafkapy.clients.cluster import Cluster, PartitionInfo
from kafkapy.clients.producer.partitioner import (
    BuiltInPartitioner,
    RoundRobinPartitioner,
    partition_for_key,
    partitioner_of,
)
from tests.unit.clients.metadata_responses import node


def cluster(partitions: int, *, without_leader: tuple[int, ...] = ()) -> Cluster:
    return Cluster(
        nodes=[node(0)],
        partitions=[
            PartitionInfo("t", p, None if p in without_leader else node(0))
            for p in range(partitions)
        ],
    )


def test_key_always_has_the_same_partition() -> None:
    assert [partition_for_key(b"foobar", n) for n in (1, 2, 10)] == [0, 0, 6]


def test_partition_sticks_until_it_has_had_a_batch() -> None:
    partitioner = BuiltInPartitioner("t", 100, random.Random(1))
    of = cluster(50)
    first = partitioner.partition(of)

    partitioner.update(99, of, may_switch=True)
    assert partitioner.partition(of) == first
    partitioner.update(1, of, may_switch=True)

    assert partitioner.partition(of) != first


def test_partition_with_an_open_batch_gets_up_to_twice_as_much() -> None:
    partitioner = BuiltInPartitioner("t", 100, random.Random(1))
    of = cluster(50)
    first = partitioner.partition(of)

    partitioner.update(199, of, may_switch=False)
    assert partitioner.partition(of) == first
    partitioner.update(1, of, may_switch=False)

    assert partitioner.partition(of) != first


def test_partitions_without_a_leader_are_passed_over_while_others_have_one() -> None:
    partitioner = BuiltInPartitioner("t", 1, random.Random(1))
    seen: Counter[int] = Counter()
    for _ in range(300):
        seen[partitioner.partition(cluster(3, without_leader=(1,)))] += 1
        partitioner.update(1, cluster(3, without_leader=(1,)), may_switch=True)

    assert seen.keys() == {0, 2}
    assert min(seen.values()) > 100
    partitioner.update(1, cluster(1, without_leader=(0,)), may_switch=True)
    assert partitioner.partition(cluster(1, without_leader=(0,))) == 0


def test_round_robin_goes_over_all_partitions() -> None:
    partitioner = RoundRobinPartitioner()

    chosen = [
        partitioner.partition("t", None, None, None, None, cluster(4, without_leader=(2,)))
        for _ in range(6)
    ]

    assert chosen == [0, 1, 3, 0, 1, 3]


def test_function_of_key_and_partitions_is_a_partitioner() -> None:
    partitioner = partitioner_of(lambda key, every, usable: every[len(key)] + usable[0])

    assert partitioner is not None
    of = cluster(4, without_leader=(0,))
    assert partitioner.partition("t", "ab", b"ab", None, None, of) == 2 + 1
    assert partitioner_of(None) is None


@pytest.mark.parametrize("size", [0, -5])
def test_batch_size_of_nothing_switches_with_every_record(size: int) -> None:
    partitioner = BuiltInPartitioner("t", size, random.Random(3))
    of = cluster(100)
    before = partitioner.partition(of)

    partitioner.update(1, of, may_switch=True)

    assert partitioner.partition(of) != before
