"""Sticky assignment for groups that give everything up before they rebalance."""

from __future__ import annotations

from collections import defaultdict

from kafkapy.clients.consumer.assignors.abstract_sticky_assignor import AbstractStickyAssignor
from kafkapy.clients.consumer.assignors.consumer_partition_assignor import (
    DEFAULT_GENERATION,
    Assignment,
    Subscription,
)
from kafkapy.clients.consumer.assignors.member_data import MemberData
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.schema import Message, Struct, array, int32, string
from kafkapy.common.types import TopicPartition


class StickyAssignorUserData(Message, versions="0-1", flexible="none"):
    """A member's last assignment, in the user data of its subscription: it owns nothing when it
    joins, and says in this way what it had. There is no version number on the wire."""

    class TopicPartitions(Struct):
        topic: str = string("0+")
        partitions: list[int] = array(int32, "0+")

    previous_assignment: list[TopicPartitions] = array("TopicPartitions", "0+")
    generation: int = int32("1+", default=DEFAULT_GENERATION)


class StickyAssignor(AbstractStickyAssignor):
    """Threading: as ConsumerPartitionAssignor.

    Ports: org.apache.kafka.clients.consumer.StickyAssignor
    """

    name = "sticky"

    def __init__(self) -> None:
        self._member_data: MemberData | None = None

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self._member_data = MemberData(tuple(assignment.partitions), generation_id)

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        if self._member_data is None:
            return None
        by_topic: defaultdict[str, list[int]] = defaultdict(list)
        for topic, partition in self._member_data.partitions:
            by_topic[topic].append(partition)
        user_data = StickyAssignorUserData(
            previous_assignment=[
                StickyAssignorUserData.TopicPartitions(topic=topic, partitions=partitions)
                for topic, partitions in by_topic.items()
            ],
            generation=self._member_data.generation,
        )
        return user_data.encode(1)

    def member_data(self, subscription: Subscription) -> MemberData:
        if not subscription.user_data:
            return MemberData()
        for version in (1, 0):
            try:
                decoded = StickyAssignorUserData.decode(subscription.user_data, version)
            except ProtocolError:
                continue  # the other version; a member whose data is neither owned nothing
            partitions = tuple(
                TopicPartition(topic.topic, partition)
                for topic in decoded.previous_assignment
                for partition in topic.partitions
            )
            return MemberData(partitions, decoded.generation)
        return MemberData()
