from __future__ import annotations

from dataclasses import dataclass, field

from kafkapy.common.errors import BrokerNotAvailableError
from kafkapy.metadata.end_point import EndPoint


@dataclass(frozen=True, slots=True)
class Node:
    """A broker as seen from one listener.

    Ports: org.apache.kafka.common.Node
    """

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id: {self.id} rack: {self.rack})"


NO_NODE = Node(-1, "", -1)


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as it registered itself. Immutable.

    `epoch` numbers the registration (-1: unknown) and takes no part in equality.

    Ports: kafka.cluster.Broker
    """

    id: int
    endpoints: tuple[EndPoint, ...]
    rack: str | None = None
    epoch: int = field(default=-1, compare=False)

    def endpoint(self, listener_name: str) -> EndPoint | None:
        for endpoint in self.endpoints:
            if endpoint.listener_name == listener_name:
                return endpoint
        return None

    def get_node(self, listener_name: str) -> Node | None:
        endpoint = self.endpoint(listener_name)
        if endpoint is None:
            return None
        return Node(self.id, endpoint.host, endpoint.port, self.rack)

    def node(self, listener_name: str) -> Node:
        """BrokerNotAvailableError when the broker has no such listener."""
        node = self.get_node(listener_name)
        if node is None:
            raise BrokerNotAvailableError(f"Broker {self.id} has no listener {listener_name}")
        return node

    def __str__(self) -> str:
        endpoints = ",".join(str(endpoint) for endpoint in self.endpoints)
        return f"{self.id} : {endpoints} : {self.rack}"


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """What the placement of replicas needs to know of a broker.

    Ports: org.apache.kafka.admin.BrokerMetadata
    """

    id: int
    rack: str | None = None
