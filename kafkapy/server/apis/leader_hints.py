"""Telling a client that asked the wrong broker which one to ask (KIP-951)."""

from __future__ import annotations

from typing import TypeVar

from kafkapy.common.protocol.messages.fetch import FetchResponse
from kafkapy.common.protocol.messages.produce import ProduceResponse
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.metadata.metadata_cache import CurrentLeader, MetadataCache

ResponseT = TypeVar("ResponseT", ProduceResponse, FetchResponse)


class LeaderHints:
    """Collects the brokers that one response names as leaders.

    Ports: kafka.server.KafkaApis.LeaderNode
    """

    def __init__(self, metadata_cache: MetadataCache, listener_name: str) -> None:
        self._metadata_cache = metadata_cache
        self._listener_name = listener_name
        self._nodes: dict[int, Node] = {}

    def leader_of(self, partition: TopicPartition) -> CurrentLeader | None:
        """The leader as this broker knows it; where it can be reached goes into the response."""
        leader = self._metadata_cache.get_current_leader(partition, self._listener_name)
        if leader is not None and leader.node is not None:
            self._nodes[leader.leader_id] = leader.node
        return leader

    def add_nodes_to(self, response: ResponseT) -> None:
        response.node_endpoints = [
            type(response).NodeEndpoint(
                node_id=node.id, host=node.host, port=node.port, rack=node.rack
            )
            for node in self._nodes.values()
        ]
