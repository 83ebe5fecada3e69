"""Assignors that need no more than the number of partitions of each topic."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping

from kafkapy.clients.consumer.assignors.consumer_partition_assignor import (
    Assignment,
    ConsumerPartitionAssignor,
    Subscription,
)
from kafkapy.common.types import TopicPartition


class AbstractPartitionAssignor(ConsumerPartitionAssignor):
    """Turns lists of partitions into assignments. Threading: as ConsumerPartitionAssignor.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor
    """

    @abstractmethod
    def assign_partitions(
        self, partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        """The partitions of every member, an empty list for one that gets none."""

    def assign(
        self, partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, Subscription]
    ) -> dict[str, Assignment]:
        assigned = self.assign_partitions(partitions_per_topic, subscriptions)
        return {member_id: Assignment(partitions) for member_id, partitions in assigned.items()}


def sorted_members(
    member_ids: Iterable[str], subscriptions: Mapping[str, Subscription]
) -> list[str]:
    """Static members first, by the id that outlives a restart, then the others by member id.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor.MemberInfo
    """

    def key(member_id: str) -> tuple[bool, str]:
        instance_id = subscriptions[member_id].group_instance_id
        return (instance_id is None, member_id if instance_id is None else instance_id)

    return sorted(member_ids, key=key)
