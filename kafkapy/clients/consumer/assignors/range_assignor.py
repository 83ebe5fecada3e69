"""Each topic's partitions in one range per member."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.clients.consumer.assignors.abstract_partition_assignor import (
    AbstractPartitionAssignor,
    sorted_members,
)
from kafkapy.clients.consumer.assignors.consumer_partition_assignor import Subscription
from kafkapy.common.types import TopicPartition


class RangeAssignor(AbstractPartitionAssignor):
    """Shares out every topic by itself, so that partitions of the same number of several topics
    meet at one member. Threading: as ConsumerPartitionAssignor.

    Ports: org.apache.kafka.clients.consumer.RangeAssignor
    """

    name = "range"

    def assign_partitions(
        self, partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        assignment: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        for topic, partition_count in sorted(partitions_per_topic.items()):
            subscribed = [
                m for m, subscription in subscriptions.items() if topic in subscription.topics
            ]
            if not subscribed:
                continue
            per_member, extra = divmod(partition_count, len(subscribed))
            start = 0
            for index, member in enumerate(sorted_members(subscribed, subscriptions)):
                end = start + per_member + (index < extra)
                assignment[member] += [TopicPartition(topic, p) for p in range(start, end)]
                start = end
        return assignment
