"""What the sticky assignors know of a member's last assignment, and who truly owns what."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkapy.clients.consumer.assignors.consumer_partition_assignor import DEFAULT_GENERATION
from kafkapy.common.types import TopicPartition

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MemberData:
    """The partitions a member says it owned, and in which generation.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor.MemberData
    """

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = DEFAULT_GENERATION


@dataclass(slots=True)
class Ownership:
    """The claims of all members, settled: of two for one partition the newer generation holds, and
    of two in the same generation neither does."""

    owned: dict[str, list[TopicPartition]] = field(default_factory=dict)
    # The owner before the present one, by an older generation's claim.
    previous_owner: dict[TopicPartition, str] = field(default_factory=dict)
    contested: set[TopicPartition] = field(default_factory=set)


def settle_ownership(
    members: Mapping[str, MemberData], partitions_per_topic: Mapping[str, int]
) -> Ownership:
    """Claims to partitions that do not exist are dropped."""
    ownership = Ownership({member: [] for member in members})
    claims: dict[TopicPartition, dict[int, list[str]]] = {}
    for member, data in members.items():
        for partition in data.partitions:
            if 0 <= partition.partition < partitions_per_topic.get(partition.topic, 0):
                claims.setdefault(partition, {}).setdefault(data.generation, []).append(member)
    for partition, by_generation in claims.items():
        generations = sorted(by_generation, reverse=True)
        owners = by_generation[generations[0]]
        if len(owners) == 1:
            ownership.owned[owners[0]].append(partition)
        else:
            logger.warning(
                "Members %s all claim %s in generation %d: none keeps it",
                owners,
                partition,
                generations[0],
            )
            ownership.contested.add(partition)
        if len(generations) > 1:
            ownership.previous_owner[partition] = by_generation[generations[1]][0]
    return ownership
