"""Which partitions are read: named ones, those of named topics, or of topics that match."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.clients.admin.topic_description import TopicDescription
from kafkapy.common.errors import UnknownTopicOrPartitionError
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.pipeline.pipeline_errors import OptionError


@dataclass(frozen=True, slots=True)
class AssignedPartitions:
    """What is there to be read now; `missing` is what was named and is not there."""

    partitions: frozenset[TopicPartition]
    topic_ids: Mapping[str, UUID]
    missing: tuple[str, ...] = ()

    def id_of(self, partition: TopicPartition) -> UUID:
        """ZERO_UUID where there is none."""
        return self.topic_ids.get(partition.topic, ZERO_UUID)


@dataclass(frozen=True, slots=True)
class AssignStrategy:
    """Ports: org.apache.spark.sql.kafka010.AssignStrategy"""

    named: frozenset[TopicPartition]
    option = "assign"

    def assigned_partitions(self, admin: AdminClient) -> AssignedPartitions:
        found = _describe(admin, {partition.topic for partition in self.named})
        partitions = self.named & _partitions(found)
        missing = tuple(str(partition) for partition in sorted(self.named - partitions))
        return AssignedPartitions(partitions, _ids(found), missing)

    def __str__(self) -> str:
        return f"assign {', '.join(map(str, sorted(self.named)))}"


@dataclass(frozen=True, slots=True)
class SubscribeStrategy:
    """Ports: org.apache.spark.sql.kafka010.SubscribeStrategy"""

    topics: frozenset[str]
    option = "subscribe"

    def assigned_partitions(self, admin: AdminClient) -> AssignedPartitions:
        found = _describe(admin, self.topics)
        missing = tuple(sorted(self.topics - found.keys()))
        return AssignedPartitions(_partitions(found), _ids(found), missing)

    def __str__(self) -> str:
        return f"subscribe {', '.join(sorted(self.topics))}"


@dataclass(frozen=True, slots=True)
class SubscribePatternStrategy:
    """Topics whose whole name matches, Kafka's own topics excepted.

    Ports: org.apache.spark.sql.kafka010.SubscribePatternStrategy
    """

    pattern: str
    option = "subscribePattern"

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise OptionError(self.option, f"{self.pattern!r} is no pattern: {error}") from error

    def assigned_partitions(self, admin: AdminClient) -> AssignedPartitions:
        matches = re.compile(self.pattern).fullmatch
        # One that is deleted between the two calls is no longer wanted, so it is not missing.
        found = _describe(admin, [topic for topic in admin.list_topics() if matches(topic)])
        return AssignedPartitions(_partitions(found), _ids(found))

    def __str__(self) -> str:
        return f"subscribePattern {self.pattern}"


ConsumerStrategy = AssignStrategy | SubscribeStrategy | SubscribePatternStrategy


def _describe(admin: AdminClient, topics: Collection[str]) -> dict[str, TopicDescription]:
    """Those that exist."""
    results = admin.describe_topics(sorted(topics), raise_errors=False)
    for error in results.errors.values():
        if not isinstance(error, UnknownTopicOrPartitionError):
            raise error
    return {description.name: description for description in results.successes.values()}


def _partitions(topics: Mapping[str, TopicDescription]) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(name, info.partition)
        for name, description in topics.items()
        for info in description.partitions
    )


def _ids(topics: Mapping[str, TopicDescription]) -> dict[str, UUID]:
    return {name: description.topic_id for name, description in topics.items()}
