import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.errors import (
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    KafkaError,
)
from kafkapy.metadata.broker import BrokerMetadata
from kafkapy.zk.replica_placement import assign_replicas_to_brokers, rack_alternated_broker_list


def assign(
    racks: dict[int, str | None], partitions: int, replication_factor: int, *, start: int = 0
) -> dict[int, list[int]]:
    brokers = [BrokerMetadata(broker_id, rack) for broker_id, rack in racks.items()]
    return assign_replicas_to_brokers(
        brokers, partitions, replication_factor, rng=random.Random(0), fixed_start_index=start
    )


def test_followers_shift_each_time_round() -> None:
    assignment = assign(dict.fromkeys(range(5)), 10, 3)

    assert assignment == {
        0: [0, 1, 2],
        1: [1, 2, 3],
        2: [2, 3, 4],
        3: [3, 4, 0],
        4: [4, 0, 1],
        5: [0, 2, 3],
        6: [1, 3, 4],
        7: [2, 4, 0],
        8: [3, 0, 1],
        9: [4, 1, 2],
    }


def test_racks_alternate() -> None:
    racks = {0: "r1", 1: "r3", 2: "r3", 3: "r2", 4: "r2", 5: "r1"}

    assert rack_alternated_broker_list(racks) == [0, 3, 1, 5, 4, 2]


def test_rack_aware_assignment_as_kafka_documents_it() -> None:
    racks: dict[int, str | None] = {0: "r1", 1: "r2", 2: "r2", 3: "r3", 4: "r3", 5: "r1"}

    assignment = assign(racks, 12, 3)

    for replicas in assignment.values():
        assert len({racks[r] for r in replicas}) == 3
    assert Counter(replicas[0] for replicas in assignment.values()) == dict.fromkeys(range(6), 2)
    assert Counter(r for rs in assignment.values() for r in rs) == dict.fromkeys(range(6), 6)


def test_partitions_added_later_are_numbered_on() -> None:
    brokers = [BrokerMetadata(i) for i in range(3)]

    assignment = assign_replicas_to_brokers(
        brokers, 2, 1, rng=random.Random(0), fixed_start_index=1, start_partition_id=4
    )

    assert assignment == {4: [2], 5: [0]}


@pytest.mark.parametrize(
    ("partitions", "replication_factor", "error"),
    [
        (0, 1, InvalidPartitionsError),
        (-1, 1, InvalidPartitionsError),
        (1, 0, InvalidReplicationFactorError),
        (1, 4, InvalidReplicationFactorError),
    ],
)
def test_impossible_numbers_are_refused(
    partitions: int, replication_factor: int, error: type[KafkaError]
) -> None:
    with pytest.raises(error):
        assign(dict.fromkeys(range(3)), partitions, replication_factor)


def test_no_brokers_is_a_replication_factor_too_large() -> None:
    with pytest.raises(InvalidReplicationFactorError):
        assign({}, 1, 1)


def test_racks_on_some_brokers_only_are_refused() -> None:
    with pytest.raises(KafkaError, match="rack"):
        assign({0: "r", 1: None}, 1, 1)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
    st.booleans(),
    st.integers(1, 30),
    st.data(),
)
def test_replicas_are_distinct_and_spread(
    rack_list: list[str], use_racks: bool, partitions: int, data: st.DataObject
) -> None:
    count = len(rack_list)
    racks: dict[int, str | None] = {
        i: rack if use_racks else None for i, rack in enumerate(rack_list)
    }
    factor = data.draw(st.integers(1, count))
    brokers = [BrokerMetadata(i, rack) for i, rack in racks.items()]
    seed = data.draw(st.integers(0, 1000))

    assignment = assign_replicas_to_brokers(brokers, partitions, factor, rng=random.Random(seed))

    assert list(assignment) == list(range(partitions))
    for replicas in assignment.values():
        assert len(replicas) == len(set(replicas)) == factor
        if use_racks:
            assert len({racks[r] for r in replicas}) == min(factor, len(set(rack_list)))
    leaders = Counter(replicas[0] for replicas in assignment.values())
    assert max(leaders.values()) <= -(-partitions // count)
