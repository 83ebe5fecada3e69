"""Topics as brokers describe them."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from kafkapy.clients.admin.config_entry import ConfigEntry
from kafkapy.common.security.acl import AclOperation
from kafkapy.metadata.broker import Node


@dataclass(frozen=True, slots=True)
class TopicPartitionInfo:
    """One partition; `leader` is None while there is none.

    Ports: org.apache.kafka.common.TopicPartitionInfo
    """

    partition: int
    leader: Node | None
    replicas: tuple[Node, ...]
    isr: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`authorized_operations` is None unless they were asked for.

    Ports: org.apache.kafka.clients.admin.TopicDescription
    """

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]
    authorized_operations: frozenset[AclOperation] | None = None


@dataclass(frozen=True, slots=True)
class TopicListing:
    """Ports: org.apache.kafka.clients.admin.TopicListing"""

    name: str
    topic_id: UUID
    is_internal: bool


@dataclass(frozen=True, slots=True)
class TopicMetadataAndConfig:
    """A topic as it was created; numbers are -1 and `config` None where the broker does not tell.

    Ports: org.apache.kafka.clients.admin.CreateTopicsResult.TopicMetadataAndConfig
    """

    topic_id: UUID
    num_partitions: int
    replication_factor: int
    config: dict[str, ConfigEntry] | None
