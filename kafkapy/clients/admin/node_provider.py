"""Which node an admin request goes to, decided when it is sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kafkapy.clients.cluster import Cluster
from kafkapy.clients.kafka_client import KafkaClient
from kafkapy.metadata.broker import Node


class NodeProvider(Protocol):
    """Immutable, and equal to others that provide the same node.

    Ports: org.apache.kafka.clients.admin.KafkaAdminClient.NodeProvider
    """

    def provide(self, cluster: Cluster, client: KafkaClient, now_ms: int) -> Node | None:
        """None when the metadata does not tell, or not yet."""
        ...


@dataclass(frozen=True, slots=True)
class LeastLoadedNodeProvider:
    """Any node that can take a request.

    Ports: org.apache.kafka.clients.admin.KafkaAdminClient.LeastLoadedNodeProvider
    """

    def provide(self, cluster: Cluster, client: KafkaClient, now_ms: int) -> Node | None:
        return client.least_loaded_node(now_ms)

    def __str__(self) -> str:
        return "any broker"


@dataclass(frozen=True, slots=True)
class ControllerNodeProvider:
    """Ports: org.apache.kafka.clients.admin.KafkaAdminClient.ControllerNodeProvider"""

    def provide(self, cluster: Cluster, client: KafkaClient, now_ms: int) -> Node | None:
        return cluster.controller

    def __str__(self) -> str:
        return "the controller"


@dataclass(frozen=True, slots=True)
class ConstantNodeIdProvider:
    """Ports: org.apache.kafka.clients.admin.KafkaAdminClient.ConstantNodeIdProvider"""

    node_id: int

    def provide(self, cluster: Cluster, client: KafkaClient, now_ms: int) -> Node | None:
        return cluster.node_by_id(self.node_id)

    def __str__(self) -> str:
        return f"broker {self.node_id}"


LEAST_LOADED_NODE = LeastLoadedNodeProvider()
CONTROLLER_NODE = ControllerNodeProvider()
