"""How a NetworkClient learns which nodes there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.common.errors import KafkaError
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.metadata import MetadataResponse
from kafkapy.metadata.broker import Node


class MetadataUpdater(Protocol):
    """For the thread of its client.

    Ports: org.apache.kafka.clients.MetadataUpdater
    """

    def fetch_nodes(self) -> Sequence[Node]: ...

    def is_update_due(self, now_ms: int) -> bool: ...

    def maybe_update(self, now_ms: int) -> int:
        """Start an update if one is due; how long until there is something to do again."""
        ...

    def handle_server_disconnect(
        self, now_ms: int, node_id: int, authentication_error: KafkaError | None, *, reason: str
    ) -> None: ...

    def handle_failed_request(self, now_ms: int, error: KafkaError | None) -> None:
        """A request of the updater's own got no answer, or can never be sent: `error`."""
        ...

    def handle_successful_response(
        self, header: RequestHeader, now_ms: int, response: MetadataResponse
    ) -> None: ...

    def close(self) -> None: ...


class ManualMetadataUpdater:
    """Nodes that somebody else sets. For one thread.

    Ports: org.apache.kafka.clients.ManualMetadataUpdater
    """

    def __init__(self, nodes: Sequence[Node] = ()) -> None:
        self.nodes = tuple(nodes)

    def fetch_nodes(self) -> Sequence[Node]:
        return self.nodes

    def is_update_due(self, now_ms: int) -> bool:
        return False

    def maybe_update(self, now_ms: int) -> int:
        return FOREVER_MS

    def handle_server_disconnect(
        self, now_ms: int, node_id: int, authentication_error: KafkaError | None, *, reason: str
    ) -> None:
        """Whoever sets the nodes sees the disconnection in the responses."""

    def handle_failed_request(self, now_ms: int, error: KafkaError | None) -> None:
        """It makes no requests."""

    def handle_successful_response(
        self, header: RequestHeader, now_ms: int, response: MetadataResponse
    ) -> None:
        """It makes no requests."""

    def close(self) -> None:
        """It holds nothing."""
