"""The state of the connection to each node, and when to try again."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from kafkapy.common.errors import ApiError
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.utils.backoff import ExponentialBackoff

logger = logging.getLogger(__name__)

HostResolver = Callable[[str, int], list[SocketAddress]]
# Nothing but a response or a connection will change the state: wait as long as there is time.
FOREVER_MS = 2**31 - 1

_EXPONENT_BASE = 2
_CONNECTION_SETUP_JITTER = 0.2


class ConnectionState(Enum):
    """Ports: org.apache.kafka.clients.ConnectionState"""

    DISCONNECTED = auto()
    CONNECTING = auto()
    CHECKING_API_VERSIONS = auto()
    READY = auto()
    AUTHENTICATION_FAILED = auto()

    @property
    def is_disconnected(self) -> bool:
        return self in (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED)

    @property
    def is_connected(self) -> bool:
        return self in (ConnectionState.CHECKING_API_VERSIONS, ConnectionState.READY)


def resolve_host(host: str, port: int) -> list[SocketAddress]:
    """Every address of the host; OSError when it has none."""
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [SocketAddress(family, sockaddr, host) for family, _, _, _, sockaddr in answers]


@dataclass(slots=True)
class _NodeConnectionState:
    host: str
    port: int
    state: ConnectionState = ConnectionState.DISCONNECTED
    addresses: list[SocketAddress] = field(default_factory=list)
    address_index: int = -1
    last_attempted_address: SocketAddress | None = None
    last_connect_attempt_ms: int = 0
    failed_attempts: int = 0
    failed_connect_attempts: int = 0
    reconnect_backoff_ms: int = 0
    connection_setup_timeout_ms: int = 0
    # Connections are throttled until then, when the broker asked for it.
    throttle_until_ms: int = 0
    authentication_error: ApiError | None = None


class ClusterConnectionStates:
    """Connection states by node id. For one thread.

    Ports: org.apache.kafka.clients.ClusterConnectionStates
    """

    def __init__(
        self,
        *,
        reconnect_backoff_ms: int,
        reconnect_backoff_max_ms: int,
        connection_setup_timeout_ms: int,
        connection_setup_timeout_max_ms: int,
        host_resolver: HostResolver = resolve_host,
    ) -> None:
        self._reconnect_backoff = ExponentialBackoff(
            reconnect_backoff_ms, _EXPONENT_BASE, reconnect_backoff_max_ms
        )
        self._setup_timeout = ExponentialBackoff(
            connection_setup_timeout_ms,
            _EXPONENT_BASE,
            connection_setup_timeout_max_ms,
            jitter=_CONNECTION_SETUP_JITTER,
        )
        self._resolve = host_resolver
        self._nodes: dict[int, _NodeConnectionState] = {}
        self._connecting: set[int] = set()

    def can_connect(self, node_id: int, now_ms: int) -> bool:
        """There is no connection and none is being made, and the backoff is over."""
        node = self._nodes.get(node_id)
        return node is None or (
            node.state.is_disconnected
            and now_ms - node.last_connect_attempt_ms >= node.reconnect_backoff_ms
        )

    def is_blacked_out(self, node_id: int, now_ms: int) -> bool:
        """Disconnected, and too soon to try again."""
        node = self._nodes.get(node_id)
        return (
            node is not None
            and node.state.is_disconnected
            and now_ms - node.last_connect_attempt_ms < node.reconnect_backoff_ms
        )

    def connection_delay_ms(self, node_id: int, now_ms: int) -> int:
        """The rest of the backoff when disconnected, FOREVER_MS in any other state."""
        node = self._nodes.get(node_id)
        if node is None:
            return 0
        if node.state is ConnectionState.CONNECTING:
            return self._connection_setup_remaining_ms(node, now_ms)
        if node.state.is_disconnected:
            return max(0, node.reconnect_backoff_ms - (now_ms - node.last_connect_attempt_ms))
        return FOREVER_MS

    def poll_delay_ms(self, node_id: int, now_ms: int) -> int:
        """How long nothing can be sent: the throttling, else the connection delay."""
        throttle_delay_ms = self.throttle_delay_ms(node_id, now_ms)
        if self.is_connected(node_id) and throttle_delay_ms > 0:
            return throttle_delay_ms
        return self.connection_delay_ms(node_id, now_ms)

    def connecting(self, node_id: int, now_ms: int, host: str, port: int) -> SocketAddress:
        """A connection is being made, to the address returned: the host's next each time.

        OSError when the host cannot be resolved.
        """
        node = self._nodes.get(node_id)
        if node is None or (node.host, node.port) != (host, port):
            node = self._nodes[node_id] = _NodeConnectionState(
                host,
                port,
                reconnect_backoff_ms=self._reconnect_backoff.backoff_ms(0),
                connection_setup_timeout_ms=self._setup_timeout.backoff_ms(0),
            )
        node.last_connect_attempt_ms = now_ms
        node.state = ConnectionState.CONNECTING
        node.authentication_error = None
        self._connecting.add(node_id)
        node.address_index += 1
        if node.address_index >= len(node.addresses):
            node.addresses = self._resolve(host, port)
            node.address_index = 0
            # An address that has just failed is not tried first again.
            if len(node.addresses) > 1 and node.addresses[0] == node.last_attempted_address:
                node.address_index = 1
        node.last_attempted_address = node.addresses[node.address_index]
        return node.last_attempted_address

    def reauthenticating(self, node_id: int, now_ms: int) -> None:
        """A connection that was ready is not, and must be so again as soon as a new one would."""
        node = self._nodes[node_id]
        node.last_connect_attempt_ms = now_ms
        node.state = ConnectionState.CONNECTING
        self._connecting.add(node_id)

    def disconnected(self, node_id: int, now_ms: int) -> None:
        node = self._nodes[node_id]
        node.last_connect_attempt_ms = now_ms
        self._update_reconnect_backoff(node)
        if node.state is ConnectionState.CONNECTING:
            self._update_connection_setup_timeout(node)
            self._connecting.discard(node_id)
        else:
            node.connection_setup_timeout_ms = self._setup_timeout.backoff_ms(0)
            node.failed_connect_attempts = 0
            # Another address may be alive while this one is restarting.
            node.addresses = []
            node.address_index = -1
        node.state = ConnectionState.DISCONNECTED

    def authentication_failed(self, node_id: int, now_ms: int, error: ApiError) -> None:
        node = self._nodes[node_id]
        node.authentication_error = error
        node.state = ConnectionState.AUTHENTICATION_FAILED
        node.last_connect_attempt_ms = now_ms
        self._connecting.discard(node_id)
        self._update_reconnect_backoff(node)

    def checking_api_versions(self, node_id: int) -> None:
        node = self._nodes[node_id]
        node.state = ConnectionState.CHECKING_API_VERSIONS
        self._connecting.discard(node_id)
        node.connection_setup_timeout_ms = self._setup_timeout.backoff_ms(0)
        node.failed_connect_attempts = 0

    def ready(self, node_id: int) -> None:
        node = self._nodes[node_id]
        node.state = ConnectionState.READY
        node.authentication_error = None
        node.failed_attempts = 0
        node.reconnect_backoff_ms = self._reconnect_backoff.backoff_ms(0)
        node.connection_setup_timeout_ms = self._setup_timeout.backoff_ms(0)
        node.failed_connect_attempts = 0
        self._connecting.discard(node_id)

    def throttle(self, node_id: int, until_ms: int) -> None:
        node = self._nodes[node_id]
        node.throttle_until_ms = max(node.throttle_until_ms, until_ms)

    def throttle_delay_ms(self, node_id: int, now_ms: int) -> int:
        node = self._nodes.get(node_id)
        return 0 if node is None else max(0, node.throttle_until_ms - now_ms)

    def is_connecting(self, node_id: int) -> bool:
        return node_id in self._connecting

    def is_preparing_connection(self, node_id: int) -> bool:
        """A connection is being made, or made but not usable yet."""
        return self.state(node_id) in (
            ConnectionState.CONNECTING,
            ConnectionState.CHECKING_API_VERSIONS,
        )

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Usable and not throttled."""
        node = self._nodes.get(node_id)
        return (
            node is not None
            and node.state is ConnectionState.READY
            and node.throttle_until_ms <= now_ms
        )

    def has_ready_nodes(self, now_ms: int) -> bool:
        return any(self.is_ready(node_id, now_ms) for node_id in self._nodes)

    def is_connected(self, node_id: int) -> bool:
        return self.state(node_id).is_connected

    def is_disconnected(self, node_id: int) -> bool:
        """It was tried and is disconnected now."""
        node = self._nodes.get(node_id)
        return node is not None and node.state.is_disconnected

    def authentication_error(self, node_id: int) -> ApiError | None:
        node = self._nodes.get(node_id)
        return None if node is None else node.authentication_error

    def state(self, node_id: int) -> ConnectionState:
        node = self._nodes.get(node_id)
        return ConnectionState.DISCONNECTED if node is None else node.state

    def address(self, node_id: int) -> str:
        """Where the node was connected to last."""
        node = self._nodes[node_id]
        return f"{node.host}:{node.port}"

    def last_connect_attempt_ms(self, node_id: int) -> int:
        node = self._nodes.get(node_id)
        return 0 if node is None else node.last_connect_attempt_ms

    def remove(self, node_id: int) -> None:
        """Forget the node, its backoff included."""
        self._nodes.pop(node_id, None)
        self._connecting.discard(node_id)

    def nodes_with_connection_setup_timeout(self, now_ms: int) -> list[int]:
        return [
            node_id
            for node_id in self._connecting
            if self._connection_setup_remaining_ms(self._nodes[node_id], now_ms) == 0
        ]

    def _connection_setup_remaining_ms(self, node: _NodeConnectionState, now_ms: int) -> int:
        elapsed_ms = now_ms - node.last_connect_attempt_ms
        return max(0, node.connection_setup_timeout_ms - elapsed_ms)

    def _update_reconnect_backoff(self, node: _NodeConnectionState) -> None:
        node.reconnect_backoff_ms = self._reconnect_backoff.backoff_ms(node.failed_attempts)
        node.failed_attempts += 1

    def _update_connection_setup_timeout(self, node: _NodeConnectionState) -> None:
        node.failed_connect_attempts += 1
        node.connection_setup_timeout_ms = self._setup_timeout.backoff_ms(
            node.failed_connect_attempts
        )
