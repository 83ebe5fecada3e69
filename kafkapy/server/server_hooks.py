"""Where something may step in between the network and the APIs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.network.acceptor import OpenServerSocket, open_server_socket
from kafkapy.network.request_channel import RequestChannel
from kafkapy.network.socket_server import DRAIN_TIMEOUT_MS
from kafkapy.server.request_handler import ApiRequestHandler


@dataclass(frozen=True, slots=True)
class ServerHooks:
    """What `kafkapy.testing` puts into a broker it builds; no setting reaches it."""

    request_channel_class: type[RequestChannel] = RequestChannel
    wrap_apis: Callable[[RequestChannel, ApiRequestHandler], ApiRequestHandler] = (
        lambda channel, apis: apis
    )
    open_server_socket: OpenServerSocket = open_server_socket
    # Listeners that accept nothing before `KafkaServer.open_listeners`.
    held_listeners: frozenset[str] = frozenset()
    drain_timeout_ms: int = DRAIN_TIMEOUT_MS


NO_HOOKS = ServerHooks()
