"""What clients need of the network."""

from __future__ import annotations

from typing import Protocol

from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.clients.client_request import (
    ClientRequest,
    ClientResponse,
    RequestCompletionHandler,
    VersionedRequest,
)
from kafkapy.common.errors import ApiError
from kafkapy.metadata.broker import Node


class KafkaClient(Protocol):
    """NetworkClient, as its users see it; see there for what each method promises.

    Ports: org.apache.kafka.clients.KafkaClient
    """

    def ready(self, node: Node, now_ms: int) -> bool: ...

    def is_ready(self, node: Node, now_ms: int) -> bool: ...

    def connection_delay_ms(self, node: Node, now_ms: int) -> int: ...

    def throttle_delay_ms(self, node: Node, now_ms: int) -> int: ...

    def poll_delay_ms(self, node: Node, now_ms: int) -> int: ...

    def connection_failed(self, node: Node) -> bool: ...

    def authentication_error(self, node: Node) -> ApiError | None: ...

    def node_api_versions(self, node_id: int) -> NodeApiVersions | None: ...

    def new_client_request(
        self,
        node_id: int,
        request: VersionedRequest,
        created_ms: int,
        *,
        expect_response: bool = True,
        request_timeout_ms: int | None = None,
        callback: RequestCompletionHandler | None = None,
    ) -> ClientRequest: ...

    def send(self, request: ClientRequest, now_ms: int) -> None: ...

    def poll(self, timeout_ms: int, now_ms: int) -> list[ClientResponse]: ...

    def in_flight_request_count(self, node_id: int | None = None) -> int: ...

    @property
    def has_in_flight_requests(self) -> bool: ...

    def has_ready_nodes(self, now_ms: int) -> bool: ...

    def least_loaded_node(self, now_ms: int) -> Node | None: ...

    def disconnect(self, node_id: int) -> None: ...

    def close_node(self, node_id: int) -> None: ...

    def wakeup(self) -> None: ...

    def close(self) -> None: ...
