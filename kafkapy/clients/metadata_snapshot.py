"""What the metadata responses so far add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from kafkapy.clients.cluster import Cluster, PartitionInfo
from kafkapy.common.errors import Errors
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition as a response described it; None where the response did not say.

    Ports: org.apache.kafka.common.requests.MetadataResponse.PartitionMetadata
    """

    error: Errors
    topic_partition: TopicPartition
    leader_id: int | None = None
    leader_epoch: int | None = None
    replica_ids: tuple[int, ...] = ()
    in_sync_replica_ids: tuple[int, ...] = ()
    offline_replica_ids: tuple[int, ...] = ()


RetainTopic = Callable[[str, bool], bool]  # topic, is internal


class MetadataSnapshot:
    """Nodes and partitions, in a form that later responses can be merged into. Immutable.

    Ports: org.apache.kafka.clients.MetadataSnapshot
    """

    def __init__(
        self,
        *,
        cluster_id: str | None,
        nodes: Mapping[int, Node],
        partitions: Iterable[PartitionMetadata],
        unauthorized_topics: Iterable[str] = (),
        invalid_topics: Iterable[str] = (),
        internal_topics: Iterable[str] = (),
        controller: Node | None = None,
        topic_ids: Mapping[str, UUID] | None = None,
        is_bootstrap: bool = False,
    ) -> None:
        self.cluster_id = cluster_id
        self.nodes = dict(nodes)
        self.partitions = {metadata.topic_partition: metadata for metadata in partitions}
        self.unauthorized_topics = frozenset(unauthorized_topics)
        self.invalid_topics = frozenset(invalid_topics)
        self.internal_topics = frozenset(internal_topics)
        self.controller = controller
        self.topic_ids = dict(topic_ids or {})
        self.cluster = self._to_cluster(is_bootstrap)

    @staticmethod
    def bootstrap(addresses: Iterable[tuple[str, int]]) -> MetadataSnapshot:
        """The addresses as nodes with the ids -1, -2 and so on."""
        nodes = {-1 - i: Node(-1 - i, host, port) for i, (host, port) in enumerate(addresses)}
        return MetadataSnapshot(cluster_id=None, nodes=nodes, partitions=(), is_bootstrap=True)

    def partition_metadata(self, partition: TopicPartition) -> PartitionMetadata | None:
        return self.partitions.get(partition)

    def leader_epoch_for(self, partition: TopicPartition) -> int | None:
        metadata = self.partitions.get(partition)
        return None if metadata is None else metadata.leader_epoch

    def merge_with(self, update: MetadataSnapshot, retain_topic: RetainTopic) -> MetadataSnapshot:
        """What the update describes, and of the rest the topics to be retained."""
        is_internal = self.internal_topics.__contains__
        retained = {topic for topic in self._topics() if retain_topic(topic, is_internal(topic))}
        topic_ids = {t: i for t, i in self.topic_ids.items() if t in retained} | update.topic_ids
        partitions = [m for tp, m in self.partitions.items() if tp.topic in retained]
        partitions += update.partitions.values()
        return MetadataSnapshot(
            cluster_id=update.cluster_id,
            nodes=update.nodes,
            partitions=partitions,
            unauthorized_topics=(self.unauthorized_topics & retained) | update.unauthorized_topics,
            invalid_topics=(self.invalid_topics & retained) | update.invalid_topics,
            internal_topics=(self.internal_topics & retained) | update.internal_topics,
            controller=update.controller,
            topic_ids=topic_ids,
        )

    def with_leaders(
        self, leaders: Iterable[PartitionMetadata], nodes: Iterable[Node]
    ) -> MetadataSnapshot:
        """The same with other leaders, which may be nodes not known before."""
        partitions = dict(self.partitions)
        partitions.update({metadata.topic_partition: metadata for metadata in leaders})
        return MetadataSnapshot(
            cluster_id=self.cluster_id,
            nodes=self.nodes | {node.id: node for node in nodes},
            partitions=partitions.values(),
            unauthorized_topics=self.unauthorized_topics,
            invalid_topics=self.invalid_topics,
            internal_topics=self.internal_topics,
            controller=self.controller,
            topic_ids=self.topic_ids,
        )

    def _topics(self) -> frozenset[str]:
        return (
            frozenset(partition.topic for partition in self.partitions)
            | self.unauthorized_topics
            | self.invalid_topics
        )

    def _to_cluster(self, is_bootstrap: bool) -> Cluster:
        return Cluster(
            cluster_id=self.cluster_id,
            nodes=self.nodes.values(),
            partitions=[self._partition_info(metadata) for metadata in self.partitions.values()],
            unauthorized_topics=self.unauthorized_topics,
            invalid_topics=self.invalid_topics,
            internal_topics=self.internal_topics,
            controller=self.controller,
            topic_ids=self.topic_ids,
            is_bootstrap_configured=is_bootstrap,
        )

    def _partition_info(self, metadata: PartitionMetadata) -> PartitionInfo:
        leader = None if metadata.leader_id is None else self.nodes.get(metadata.leader_id)
        return PartitionInfo(
            metadata.topic_partition.topic,
            metadata.topic_partition.partition,
            leader,
            self._nodes_of(metadata.replica_ids),
            self._nodes_of(metadata.in_sync_replica_ids),
            self._nodes_of(metadata.offline_replica_ids),
        )

    def _nodes_of(self, ids: Iterable[int]) -> tuple[Node, ...]:
        # A replica on a broker that is down has an id and no address.
        return tuple(self.nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids)
