"""How a socket becomes a channel whose ends know each other by SASL."""

from __future__ import annotations

import socket
from collections.abc import Callable

from kafkapy.common.network.authenticator import Authenticator
from kafkapy.common.network.channel_builders import ChannelBuilder, required_peer
from kafkapy.common.network.kafka_channel import KafkaChannel
from kafkapy.common.network.send_receive import NetworkReceive
from kafkapy.common.network.socket_address import SocketAddress

ClientAuthenticatorFactory = Callable[[KafkaChannel, SocketAddress], Authenticator]


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
        channel.authenticator = self._new_authenticator(channel, required_peer(peer))
        return channel
