"""Which replica a consumer had better read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.storage.fetch_params import ClientMetadata


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A replica as the leader knows it.

    Ports: org.apache.kafka.common.replica.ReplicaView
    """

    endpoint: Node
    log_end_offset: int
    time_since_last_caught_up_ms: int


@dataclass(frozen=True, slots=True)
class PartitionView:
    """The replicas that could serve a fetch, the leader among them.

    Ports: org.apache.kafka.common.replica.PartitionView
    """

    replicas: tuple[ReplicaView, ...]
    leader: ReplicaView


class ReplicaSelector(Protocol):
    """Ports: org.apache.kafka.common.replica.ReplicaSelector"""

    def select(
        self, topic_partition: TopicPartition, client: ClientMetadata, partition: PartitionView
    ) -> ReplicaView | None: ...
