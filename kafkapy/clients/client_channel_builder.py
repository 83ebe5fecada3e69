"""What the security settings of a client make of its connections.

Ports: org.apache.kafka.common.network.ChannelBuilders
"""

from __future__ import annotations

from kafkapy.clients.client_config import CommonClientConfig
from kafkapy.common.network.authenticator import Authenticator
from kafkapy.common.network.channel_builders import ChannelBuilder, PlaintextChannelBuilder
from kafkapy.common.network.kafka_channel import KafkaChannel
from kafkapy.common.network.sasl_channel_builder import SaslChannelBuilder
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.common.network.ssl_channel_builder import SslChannelBuilder
from kafkapy.common.security.sasl.sasl_client_authenticator import SaslClientAuthenticator
from kafkapy.common.security.sasl.sasl_clients import sasl_client_factory
from kafkapy.common.security.ssl.ssl_factory import SslFactory
from kafkapy.metadata.end_point import SecurityProtocol
from kafkapy.utils.time import Time


def client_channel_builder(
    config: CommonClientConfig, time: Time, *, client_id: str
) -> ChannelBuilder:
    """InvalidConfigurationError names a security setting that is wrong or missing."""
    protocol = SecurityProtocol[config.security_protocol]
    builder: ChannelBuilder = PlaintextChannelBuilder()
    if protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL):
        builder = SslChannelBuilder(SslFactory(config).new_client_context())
    if protocol in (SecurityProtocol.PLAINTEXT, SecurityProtocol.SSL):
        return builder
    new_sasl_client = sasl_client_factory(config)

    def new_authenticator(channel: KafkaChannel, peer: SocketAddress) -> Authenticator:
        return SaslClientAuthenticator(
            channel,
            peer,
            mechanism=config.sasl_mechanism,
            new_sasl_client=new_sasl_client,
            client_id=client_id,
            time=time,
        )

    return SaslChannelBuilder(builder, new_authenticator)
