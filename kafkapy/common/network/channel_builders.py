"""How a socket becomes a channel, by security protocol."""

from __future__ import annotations

import socket
from typing import Protocol

from kafkapy.common.network.io_platform import NATIVE, IoPlatform
from kafkapy.common.network.kafka_channel import KafkaChannel
from kafkapy.common.network.send_receive import NetworkReceive
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.common.network.transport_layer import PlaintextTransportLayer


class ChannelBuilder(Protocol):
    """Makes the channels of one listener, or of one client.

    Ports: org.apache.kafka.common.network.ChannelBuilder
    """

    def build_channel(
        self,
        channel_id: str,
        sock: socket.socket,
        *,
        receive: NetworkReceive,
        client_address: str,
        peer: SocketAddress | None = None,
    ) -> KafkaChannel:
        """`peer` is whom a connection is made to, None for one that was accepted."""
        ...


class PlaintextChannelBuilder:
    """Channels without encryption or authentication. Immutable.

    Ports: org.apache.kafka.common.network.PlaintextChannelBuilder
    """

    def __init__(self, platform: IoPlatform = NATIVE) -> None:
        self._platform = platform

    def build_channel(
        self,
        channel_id: str,
        sock: socket.socket,
        *,
        receive: NetworkReceive,
        client_address: str,
        peer: SocketAddress | None = None,
    ) -> KafkaChannel:
        return KafkaChannel(
            channel_id,
            PlaintextTransportLayer(sock, self._platform),
            receive=receive,
            client_address=client_address,
        )


def required_peer(peer: SocketAddress | None) -> SocketAddress:
    """For builders of channels that only a client makes."""
    if peer is None:
        raise ValueError("an accepted connection cannot have a client's security")
    return peer
