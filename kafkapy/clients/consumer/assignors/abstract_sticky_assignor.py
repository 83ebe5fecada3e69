"""Balanced assignments that move as few partitions as they can."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping

from kafkapy.clients.consumer.assignors.abstract_partition_assignor import (
    AbstractPartitionAssignor,
)
from kafkapy.clients.consumer.assignors.constrained_assignment_builder import (
    ConstrainedAssignmentBuilder,
)
from kafkapy.clients.consumer.assignors.consumer_partition_assignor import Subscription
from kafkapy.clients.consumer.assignors.general_assignment_builder import (
    GeneralAssignmentBuilder,
)
from kafkapy.clients.consumer.assignors.member_data import MemberData, settle_ownership
from kafkapy.common.types import TopicPartition


class AbstractStickyAssignor(AbstractPartitionAssignor):
    """Shares out partitions evenly over members, keeping what members own where balance allows.
    Threading: as ConsumerPartitionAssignor.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor
    """

    @abstractmethod
    def member_data(self, subscription: Subscription) -> MemberData:
        """What the member owned, from wherever the protocol keeps it."""

    def assign_partitions(
        self, partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        assignment, _ = self.assign_with_transfers(partitions_per_topic, subscriptions)
        return assignment

    def assign_with_transfers(
        self, partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, Subscription]
    ) -> tuple[dict[str, list[TopicPartition]], set[TopicPartition]]:
        """The assignment, and those of its partitions that another member may still hold."""
        members = {name: self.member_data(s) for name, s in subscriptions.items()}
        ownership = settle_ownership(members, partitions_per_topic)
        topic_sets = {frozenset(s.topics) for s in subscriptions.values()}
        if len(topic_sets) == 1:
            topics = next(iter(topic_sets))
            counts = {t: n for t, n in partitions_per_topic.items() if t in topics}
            assignment = ConstrainedAssignmentBuilder(counts, ownership).build()
        else:
            topics_of = {name: frozenset(s.topics) for name, s in subscriptions.items()}
            assignment = GeneralAssignmentBuilder(
                partitions_per_topic, topics_of, ownership
            ).build()
        holders: defaultdict[TopicPartition, set[str]] = defaultdict(set)
        for name, data in members.items():
            for partition in data.partitions:
                holders[partition].add(name)
        transferring = {
            partition
            for name, partitions in assignment.items()
            for partition in partitions
            if partition in ownership.contested
            or (partition in holders and name not in holders[partition])
        }
        return assignment, transferring
