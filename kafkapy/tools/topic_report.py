"""What kafka-topics --describe shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from kafkapy.clients.admin import (
    AdminClient,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    PartitionReassignment,
    TopicDescription,
    TopicPartitionInfo,
)
from kafkapy.common.errors import ClusterAuthorizationError, UnsupportedVersionError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.types import TopicPartition, uuid_to_base64
from kafkapy.metadata.broker import Node

_MIN_ISR = "min.insync.replicas"

Reassignments = Mapping[TopicPartition, PartitionReassignment]


class TopicReport:
    """A line for each topic and one for each partition, or only for those in some state.

    Several states mean partitions that are in any of them. For one thread.

    Ports: org.apache.kafka.tools.TopicCommand.DescribeOptions
    """

    def __init__(
        self,
        admin: AdminClient,
        *,
        only_overridden: bool,
        only_under_replicated: bool,
        only_unavailable: bool,
        only_under_min_isr: bool,
        only_at_min_isr: bool,
    ) -> None:
        # constant after construction
        self._admin = admin
        self._only_overridden = only_overridden
        self._only_under_replicated = only_under_replicated
        self._only_unavailable = only_unavailable
        self._only_under_min_isr = only_under_min_isr
        self._only_at_min_isr = only_at_min_isr
        self._only_some_partitions = (
            only_under_replicated or only_unavailable or only_under_min_isr or only_at_min_isr
        )

    def print(self, topics: Sequence[str] | Sequence[UUID]) -> None:
        described = self._admin.describe_topics(topics)
        descriptions = [described[topic] for topic in topics]
        resources = {
            description.name: ConfigResource(ConfigResourceType.TOPIC, description.name)
            for description in descriptions
        }
        configs = self._admin.describe_configs(resources.values()) if resources else {}
        live_brokers = {node.id for node in self._admin.describe_cluster().nodes}
        by_id = any(isinstance(topic, UUID) for topic in topics)
        eligible = "" if not by_id and self._knows_eligible_leaders(live_brokers) else "N/A"
        reassignments = self._reassignments(descriptions)
        for description in descriptions:
            entries = configs[resources[description.name]]
            overrides = {
                name: entry.value for name, entry in sorted(entries.items()) if not entry.is_default
            }
            if not self._only_some_partitions and (overrides or not self._only_overridden):
                _print_topic(description, overrides, reassignments)
            if not self._only_overridden:
                for info in description.partitions:
                    move = reassignments.get(TopicPartition(description.name, info.partition))
                    if self._is_wanted(info, entries, move, live_brokers):
                        _print_partition(description.name, info, move, eligible)

    def _knows_eligible_leaders(self, brokers: set[int]) -> bool:
        """Whether Kafka's tool, asking by name, would hear of eligible leader replicas.

        They are of KRaft: brokers that can tell of them at all tell that there are none.
        """
        supported = self._admin.api_versions(brokers)
        api = ApiKeys.DESCRIBE_TOPIC_PARTITIONS
        return all(versions.api_version(api) is not None for versions in supported.values())

    def _reassignments(self, descriptions: Sequence[TopicDescription]) -> Reassignments:
        partitions = [
            TopicPartition(description.name, info.partition)
            for description in descriptions
            for info in description.partitions
        ]
        if not partitions:
            return {}
        try:
            return self._admin.list_partition_reassignments(partitions)
        except (UnsupportedVersionError, ClusterAuthorizationError):
            # Old brokers, and brokers that do not tell everybody: nothing is known to move.
            return {}

    def _is_wanted(
        self,
        info: TopicPartitionInfo,
        entries: Mapping[str, ConfigEntry],
        move: PartitionReassignment | None,
        live_brokers: set[int],
    ) -> bool:
        if not self._only_some_partitions:
            return True
        min_isr = int(entries[_MIN_ISR].value or 1)
        return (
            (self._only_under_replicated and len(info.isr) < _replication_factor(info, move))
            or (
                self._only_unavailable
                and (info.leader is None or info.leader.id not in live_brokers)
            )
            or (self._only_under_min_isr and len(info.isr) < min_isr)
            or (self._only_at_min_isr and len(info.isr) == min_isr)
        )


def _print_topic(
    description: TopicDescription,
    overrides: Mapping[str, str | None],
    reassignments: Reassignments,
) -> None:
    first = description.partitions[0]
    factor = _replication_factor(
        first, reassignments.get(TopicPartition(description.name, first.partition))
    )
    configs = ",".join(f"{name}={value}" for name, value in overrides.items())
    print(
        f"Topic: {description.name}\tTopicId: {uuid_to_base64(description.topic_id)}"
        f"\tPartitionCount: {len(description.partitions)}\tReplicationFactor: {factor}"
        f"\tConfigs: {configs}"
    )


def _print_partition(
    topic: str, info: TopicPartitionInfo, move: PartitionReassignment | None, eligible: str
) -> None:
    moved = (
        ""
        if move is None
        else f"\tAdding Replicas: {_joined(move.adding_replicas)}"
        f"\tRemoving Replicas: {_joined(move.removing_replicas)}"
    )
    print(
        f"\tTopic: {topic}\tPartition: {info.partition}"
        f"\tLeader: {'none' if info.leader is None else info.leader.id}"
        f"\tReplicas: {_ids(info.replicas)}\tIsr: {_ids(info.isr)}{moved}"
        f"\tElr: {eligible}\tLastKnownElr: {eligible}"
    )


def _replication_factor(info: TopicPartitionInfo, move: PartitionReassignment | None) -> int:
    """Without the replicas that a move under way has added."""
    return len(info.replicas) - (0 if move is None else len(move.adding_replicas))


def _ids(nodes: Sequence[Node]) -> str:
    return _joined([node.id for node in nodes])


def _joined(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))
