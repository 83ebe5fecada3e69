"""Sticky assignment for groups whose members keep reading while they rebalance."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from kafkapy.clients.consumer.assignors.abstract_sticky_assignor import AbstractStickyAssignor
from kafkapy.clients.consumer.assignors.consumer_partition_assignor import (
    DEFAULT_GENERATION,
    Assignment,
    RebalanceProtocol,
    Subscription,
)
from kafkapy.clients.consumer.assignors.member_data import MemberData
from kafkapy.common.types import TopicPartition

_GENERATION = struct.Struct(">i")


class CooperativeStickyAssignor(AbstractStickyAssignor):
    """Hands a partition that another member still owns to nobody: that member gives it up, which
    starts another rebalance, and only there does it get its new owner.
    Threading: as ConsumerPartitionAssignor.

    Ports: org.apache.kafka.clients.consumer.CooperativeStickyAssignor
    """

    name = "cooperative-sticky"

    def __init__(self) -> None:
        self._generation = DEFAULT_GENERATION

    @property
    def supported_protocols(self) -> Sequence[RebalanceProtocol]:
        return (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def on_assignment(self, assignment: Assignment, generation_id: int) -> None:
        self._generation = generation_id

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return _GENERATION.pack(self._generation)

    def member_data(self, subscription: Subscription) -> MemberData:
        generation = subscription.generation_id
        user_data = subscription.user_data
        # Before version 2 of the subscription the generation was only in the user data.
        if generation == DEFAULT_GENERATION and user_data and len(user_data) >= _GENERATION.size:
            (generation,) = _GENERATION.unpack_from(user_data)
        return MemberData(subscription.owned_partitions, generation)

    def assign_partitions(
        self, partitions_per_topic: Mapping[str, int], subscriptions: Mapping[str, Subscription]
    ) -> dict[str, list[TopicPartition]]:
        assignment, transferring = self.assign_with_transfers(partitions_per_topic, subscriptions)
        return {
            member: [partition for partition in partitions if partition not in transferring]
            for member, partitions in assignment.items()
        }
