"""All partitions of all topics, one after the other to one member after the other."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from kafkapy.clients.consumer.assignors.abstract_partition_assignor import (
    AbstractPartitionAssignor,
    sorted_members,
)
from kafkapy.clients.consumer.assignors.consumer_partition_assignor import Subscription
from kafkapy.common.types import TopicPartition


class RoundRobinAssignor(AbstractPartitionAssignor):
    """Goes round the members, passing over those that do not subscribe to the partition's topic.
    Threading: as ConsumerPartitionAssignor.

    Ports: org.apache.kafka.clients.consumer.RoundRobinAssignor
    """

    name = "roundrobin"

    def assign_partitions(
        self, partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        assignment: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        subscribed = {topic for s in subscriptions.values() for topic in s.topics}
        members = cycle(sorted_members(subscriptions, subscriptions))
        for topic, partition_count in sorted(partitions_per_topic.items()):
            if topic not in subscribed:
                continue
            for partition in range(partition_count):
                member = next(m for m in members if topic in subscriptions[m].topics)
                assignment[member].append(TopicPartition(topic, partition))
        return assignment
