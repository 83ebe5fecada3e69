"""Brokers, their directories and their features, as they describe them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from kafkapy.common.errors import KafkaError
from kafkapy.common.security.acl import AclOperation
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node

UNKNOWN_VOLUME_BYTES = -1
INVALID_OFFSET_LAG = -1


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """`controller` is None while there is none.

    Ports: org.apache.kafka.clients.admin.DescribeClusterResult
    """

    cluster_id: str | None
    nodes: tuple[Node, ...]
    controller: Node | None
    authorized_operations: frozenset[AclOperation] | None = None


class ReplicaInfo(NamedTuple):
    """A replica in a log directory. `is_future`: it is on its way there from another directory.

    Ports: org.apache.kafka.clients.admin.ReplicaInfo
    """

    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """A log directory; the size and the free bytes of its volume are -1 where they are not told.

    Ports: org.apache.kafka.clients.admin.LogDirDescription
    """

    error: KafkaError | None
    replica_infos: dict[TopicPartition, ReplicaInfo]
    total_bytes: int = UNKNOWN_VOLUME_BYTES
    usable_bytes: int = UNKNOWN_VOLUME_BYTES


@dataclass(frozen=True, slots=True)
class TopicPartitionReplica:
    """Ports: org.apache.kafka.common.TopicPartitionReplica"""

    topic: str
    partition: int
    broker_id: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker_id}"


@dataclass(frozen=True, slots=True)
class ReplicaLogDirInfo:
    """Where a replica is, and where it is being moved to; None: nowhere.

    Ports: org.apache.kafka.clients.admin.DescribeReplicaLogDirsResult.ReplicaLogDirInfo
    """

    current_log_dir: str | None = None
    current_offset_lag: int = INVALID_OFFSET_LAG
    future_log_dir: str | None = None
    future_offset_lag: int = INVALID_OFFSET_LAG


class VersionRange(NamedTuple):
    """Ports: org.apache.kafka.clients.admin.FinalizedVersionRange"""

    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True)
class FeatureMetadata:
    """What the broker supports, and what is in force in the whole cluster.

    Ports: org.apache.kafka.clients.admin.FeatureMetadata
    """

    finalized_features: dict[str, VersionRange]
    finalized_features_epoch: int | None
    supported_features: dict[str, VersionRange]


class UpgradeType(IntEnum):
    """Ports: org.apache.kafka.clients.admin.FeatureUpdate.UpgradeType"""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """A level to be put in force; 0 takes the feature out of force.

    Ports: org.apache.kafka.clients.admin.FeatureUpdate
    """

    max_version_level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE
