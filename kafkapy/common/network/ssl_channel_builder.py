"""How a socket becomes an encrypted channel."""

from __future__ import annotations

import socket
import ssl

from kafkapy.common.network.channel_builders import required_peer
from kafkapy.common.network.kafka_channel import KafkaChannel
from kafkapy.common.network.send_receive import NetworkReceive
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.common.network.ssl_transport_layer import SslTransportLayer


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
        transport = SslTransportLayer(sock, self._context, required_peer(peer))
        receive.read_ahead_of = transport
        return KafkaChannel(channel_id, transport, receive=receive, client_address=client_address)
