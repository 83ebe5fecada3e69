"""Which brokers get the replicas of new partitions.

Without racks: the first replica goes round the brokers from a random start; the others follow it at
a distance that grows by one each time the first replicas have gone round, so that the followers of
one broker's partitions spread over all other brokers. With racks the list of brokers alternates
between racks, and a replica skips racks that have one already as long as some rack has none.

Ports: org.apache.kafka.admin.AdminUtils
"""

import random
from collections.abc import Mapping, Sequence

from kafkapy.common.errors import (
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    KafkaError,
)
from kafkapy.metadata.broker import BrokerMetadata


def assign_replicas_to_brokers(
    brokers: Sequence[BrokerMetadata],
    num_partitions: int,
    replication_factor: int,
    *,
    rng: random.Random,
    fixed_start_index: int | None = None,
    start_partition_id: int = 0,
) -> dict[int, list[int]]:
    """Replicas for `num_partitions` partitions, numbered from `start_partition_id`."""
    if num_partitions <= 0:
        raise InvalidPartitionsError("The number of partitions must be at least 1")
    if replication_factor <= 0:
        raise InvalidReplicationFactorError("The replication factor must be at least 1")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactorError(
            f"Replication factor {replication_factor} is more than the {len(brokers)}"
            " brokers that are alive"
        )
    racks = {broker.id: broker.rack for broker in brokers}
    known = {broker_id: rack for broker_id, rack in racks.items() if rack is not None}
    if known and len(known) < len(racks):
        raise KafkaError("Some brokers have a rack and some have none: no rack-aware assignment")
    ids = rack_alternated_broker_list(known) if known else [broker.id for broker in brokers]
    size = len(ids)
    start = rng.randrange(size) if fixed_start_index is None else fixed_start_index
    shift = rng.randrange(size) if fixed_start_index is None else fixed_start_index
    assignment: dict[int, list[int]] = {}
    for partition in range(start_partition_id, start_partition_id + num_partitions):
        if partition > 0 and partition % size == 0:
            shift += 1
        first = (partition + start) % size
        if known:
            assignment[partition] = _rack_aware(ids, known, first, shift, replication_factor)
        else:
            followers = range(replication_factor - 1)
            indexes = (first, *(_replica_index(first, shift, i, size) for i in followers))
            assignment[partition] = [ids[index] for index in indexes]
    return assignment


def rack_alternated_broker_list(racks: Mapping[int, str]) -> list[int]:
    """Brokers ordered so that neighbours are in different racks, as far as the racks go."""
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id], []).append(broker_id)
    queues = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(len(queue) for queue in queues)
    return [queue[i] for i in range(longest) for queue in queues if i < len(queue)]


def _rack_aware(
    ids: Sequence[int],
    racks: Mapping[int, str],
    first: int,
    shift: int,
    replication_factor: int,
) -> list[int]:
    num_racks = len(set(racks.values()))
    replicas = [ids[first]]
    used_racks = {racks[ids[first]]}
    step = 0
    while len(replicas) < replication_factor:
        broker_id = ids[_replica_index(first, shift * num_racks, step, len(ids))]
        step += 1
        rack_is_free = racks[broker_id] not in used_racks or len(used_racks) == num_racks
        if rack_is_free and broker_id not in replicas:
            replicas.append(broker_id)
            used_racks.add(racks[broker_id])
    return replicas


def _replica_index(first: int, second_shift: int, replica: int, size: int) -> int:
    return (first + 1 + (second_shift + replica) % (size - 1)) % size
