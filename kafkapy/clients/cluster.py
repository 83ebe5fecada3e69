"""A client's picture of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.metadata.broker import Node


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition and its replicas; `leader` is None while there is none.

    Ports: org.apache.kafka.common.PartitionInfo
    """

    topic: str
    partition: int
    leader: Node | None
    replicas: tuple[Node, ...] = ()
    in_sync_replicas: tuple[Node, ...] = ()
    offline_replicas: tuple[Node, ...] = ()


class Cluster:
    """Nodes, topics and partitions as last heard. Immutable.

    Ports: org.apache.kafka.common.Cluster
    """

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        nodes: Iterable[Node] = (),
        partitions: Iterable[PartitionInfo] = (),
        unauthorized_topics: Iterable[str] = (),
        invalid_topics: Iterable[str] = (),
        internal_topics: Iterable[str] = (),
        controller: Node | None = None,
        topic_ids: Mapping[str, UUID] | None = None,
        is_bootstrap_configured: bool = False,
    ) -> None:
        self.cluster_id = cluster_id
        self.nodes = tuple(nodes)
        self.controller = controller
        self.unauthorized_topics = frozenset(unauthorized_topics)
        self.invalid_topics = frozenset(invalid_topics)
        self.internal_topics = frozenset(internal_topics)
        self.topic_ids: Mapping[str, UUID] = dict(topic_ids or {})
        self.is_bootstrap_configured = is_bootstrap_configured
        self._nodes_by_id = {node.id: node for node in self.nodes}
        self._partitions: dict[TopicPartition, PartitionInfo] = {}
        by_topic: dict[str, list[PartitionInfo]] = {}
        by_node: dict[int, list[PartitionInfo]] = {}
        for info in sorted(partitions, key=lambda info: info.partition):
            self._partitions[TopicPartition(info.topic, info.partition)] = info
            by_topic.setdefault(info.topic, []).append(info)
            if info.leader is not None:
                by_node.setdefault(info.leader.id, []).append(info)
        self._by_topic = {topic: tuple(infos) for topic, infos in by_topic.items()}
        self._available_by_topic = {
            topic: tuple(info for info in infos if info.leader is not None)
            for topic, infos in by_topic.items()
        }
        self._by_node = {node_id: tuple(infos) for node_id, infos in by_node.items()}
        self._topic_names = {id_: topic for topic, id_ in self.topic_ids.items()}

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(self._by_topic)

    def node_by_id(self, node_id: int) -> Node | None:
        return self._nodes_by_id.get(node_id)

    def node_if_online(self, partition: TopicPartition, node_id: int) -> Node | None:
        """The node when it holds a replica of the partition that is not offline."""
        node = self._nodes_by_id.get(node_id)
        info = self._partitions.get(partition)
        if node is None or info is None or node in info.offline_replicas:
            return None
        return node if node in info.replicas else None

    def leader_for(self, partition: TopicPartition) -> Node | None:
        info = self._partitions.get(partition)
        return None if info is None else info.leader

    def partition(self, partition: TopicPartition) -> PartitionInfo | None:
        return self._partitions.get(partition)

    def partitions_for_topic(self, topic: str) -> tuple[PartitionInfo, ...]:
        """In order of their numbers; empty for an unknown topic."""
        return self._by_topic.get(topic, ())

    def available_partitions_for_topic(self, topic: str) -> tuple[PartitionInfo, ...]:
        """Those that have a leader."""
        return self._available_by_topic.get(topic, ())

    def partitions_for_node(self, node_id: int) -> tuple[PartitionInfo, ...]:
        """Those that the node leads."""
        return self._by_node.get(node_id, ())

    def partition_count_for_topic(self, topic: str) -> int | None:
        """None for an unknown topic."""
        infos = self._by_topic.get(topic)
        return None if infos is None else len(infos)

    def topic_id(self, topic: str) -> UUID:
        """ZERO_UUID when it is not known."""
        return self.topic_ids.get(topic, ZERO_UUID)

    def topic_name(self, topic_id: UUID) -> str | None:
        return self._topic_names.get(topic_id)

    def __repr__(self) -> str:
        return (
            f"Cluster(id={self.cluster_id}, nodes={self.nodes}, controller={self.controller}, "
            f"partitions={list(self._partitions.values())})"
        )
