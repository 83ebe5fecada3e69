"""How a socket becomes a channel, by security protocol."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from kafkapy.common.network.authenticator import Authenticator
from kafkapy.common.network.io_platform import NATIVE, IoPlatform
from kafkapy.common.network.kafka_channel import KafkaChannel
from kafkapy.common.network.send_receive import NetworkReceive
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.common.network.ssl_transport_layer import SslTransportLayer
from kafkapy.common.network.transport_layer import PlaintextTransportLayer

ClientAuthenticatorFactory = Callable[[KafkaChannel, SocketAddress], Authenticator]


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


class SslChannelBuilder:
    """Encrypted channels of a client. Immutable.

    Ports: org.apache.kafka.common.network.SslChannelBuilder
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    def build_channel(
        self,
        channel_id: str,
        sock: socket.socket,
        *,
        receive: NetworkReceive,
        client_address: str,
        peer: SocketAddress | None = None,
    ) -> KafkaChannel:
        transport = SslTransportLayer(sock, self._context, _required(peer))
        receive.read_ahead_of = transport
        return KafkaChannel(channel_id, transport, receive=receive, client_address=client_address)


class SaslChannelBuilder:
    """Channels of a client, encrypted or not as `transport` makes them, that say who it is.
    Immutable.

    Ports: org.apache.kafka.common.network.SaslChannelBuilder
    """

    def __init__(
        self, transport: ChannelBuilder, new_authenticator: ClientAuthenticatorFactory
    ) -> None:
        self._transport = transport
        self._new_authenticator = new_authenticator

    def build_channel(
        self,
        channel_id: str,
        sock: socket.socket,
        *,
        receive: NetworkReceive,
        client_address: str,
        peer: SocketAddress | None = None,
    ) -> KafkaChannel:
        channel = self._transport.build_channel(
            channel_id, sock, receive=receive, client_address=client_address, peer=peer
        )
        channel.authenticator = self._new_authenticator(channel, _required(peer))
        return channel


def _required(peer: SocketAddress | None) -> SocketAddress:
    if peer is None:
        raise ValueError("an accepted connection cannot have a client's security")
    return peer
