"""Putting a client's parts together.

Ports: org.apache.kafka.clients.ClientUtils
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable

from kafkapy.clients.client_channel_builder import client_channel_builder
from kafkapy.clients.client_config import REBOOTSTRAP, RESOLVE_CANONICAL, CommonClientConfig
from kafkapy.clients.metadata import Metadata
from kafkapy.clients.metadata_updater import MetadataUpdater
from kafkapy.clients.network_client import NetworkClient, NetworkClientConfig
from kafkapy.common.config_def import InvalidValueError
from kafkapy.common.network.selector import Selector
from kafkapy.common.network.send_receive import UNLIMITED
from kafkapy.utils.time import Time

# Brackets around an IPv6 address, and a protocol in front, are optional.
_ADDRESS = re.compile(r"(?:[a-zA-Z_0-9]+://)?(?:\[([0-9a-fA-F:.%]+)\]|([^:\[\]/\s]+)):([0-9]+)")


def parse_and_validate_addresses(
    servers: Iterable[str], client_dns_lookup: str
) -> list[tuple[str, int]]:
    """The (host, port) of each server that has an address.

    InvalidValueError for one that is malformed, or when none can be resolved.
    """
    addresses: list[tuple[str, int]] = []
    servers = tuple(servers)
    for server in servers:
        found = _ADDRESS.fullmatch(server)
        if found is None or not 0 < int(found[3]) <= 65535:
            raise InvalidValueError("bootstrap.servers", repr(server), "expected host:port")
        host, port = found[1] or found[2], int(found[3])
        try:
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            continue
        if client_dns_lookup == RESOLVE_CANONICAL:
            names = {socket.getfqdn(str(sockaddr[0])) for *_, sockaddr in answers}
            addresses.extend((name, port) for name in sorted(names))
        else:
            addresses.append((host, port))
    if not addresses:
        raise InvalidValueError(
            "bootstrap.servers", ",".join(servers), "none of these can be resolved"
        )
    return addresses


def create_network_client(
    config: CommonClientConfig,
    time: Time,
    *,
    client_id: str,
    max_in_flight_requests_per_connection: int,
    metadata: Metadata | None = None,
    metadata_updater: MetadataUpdater | None = None,
    request_timeout_ms: int | None = None,
) -> NetworkClient:
    """A client with connections of its own. `metadata` or the updater, as NetworkClient wants."""
    selector = Selector(
        client_channel_builder(config, time, client_id=client_id),
        time,
        max_receive_size=UNLIMITED,
        connections_max_idle_ms=config.connections_max_idle_ms,
    )
    return NetworkClient(
        selector,
        NetworkClientConfig(
            client_id=client_id,
            request_timeout_ms=request_timeout_ms or config.request_timeout_ms,
            max_in_flight_requests_per_connection=max_in_flight_requests_per_connection,
            reconnect_backoff_ms=config.reconnect_backoff_ms,
            reconnect_backoff_max_ms=config.reconnect_backoff_max_ms,
            connection_setup_timeout_ms=config.socket_connection_setup_timeout_ms,
            connection_setup_timeout_max_ms=config.socket_connection_setup_timeout_max_ms,
            send_buffer_bytes=config.send_buffer_bytes,
            receive_buffer_bytes=config.receive_buffer_bytes,
            rebootstrap=config.metadata_recovery_strategy == REBOOTSTRAP,
        ),
        time,
        metadata=metadata,
        metadata_updater=metadata_updater,
    )
