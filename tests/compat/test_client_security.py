"""kafkapy's clients at an Apache Kafka that wants TLS, SASL or both."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.clients.admin import AdminClient, NewTopic
from kafkapy.clients.blocking_node_client import BlockingNodeClient
from kafkapy.clients.client_channel_builder import client_channel_builder
from kafkapy.clients.client_config import CommonClientConfig, parse_client_config
from kafkapy.clients.consumer import KafkaConsumer
from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.errors import (
    IllegalSaslStateError,
    KafkaError,
    RequestTimeoutError,
    SaslAuthenticationError,
    SslAuthenticationError,
)
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.metadata.broker import Node
from kafkapy.tools import kafka_topics
from kafkapy.utils.time import SystemTime
from tests.compat.secure_broker import (
    SecureBroker,
    login,
    start_secure_broker,
    unsecured_token,
)

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
RECORDS = [bytes([number]) * 100_000 for number in range(10)]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    started = start_secure_broker(tmp_path_factory.mktemp("secure"))
    yield started
    started.broker.stop()


def settings_of(secure: SecureBroker, listener: str, mechanism: str | None) -> dict[str, object]:
    settings: dict[str, object] = {"bootstrap.servers": secure.address(listener)}
    if mechanism is None:
        settings["security.protocol"] = "SSL"
    else:
        settings["security.protocol"] = "SASL_PLAINTEXT" if listener == "BRIEF" else listener
        settings |= login(mechanism)
    if "PLAINTEXT" not in listener:
        settings |= secure.trust
    return settings | (secure.identity if listener == "MUTUAL" else {})


CASES = [
    ("SSL", None),
    ("MUTUAL", None),
    *((protocol, each) for protocol in ("SASL_SSL", "SASL_PLAINTEXT") for each in MECHANISMS),
]


@pytest.mark.parametrize(("listener", "mechanism"), CASES)
def test_every_client_works_over_every_protocol_and_mechanism(
    secure: SecureBroker, topic_name: str, listener: str, mechanism: str | None
) -> None:
    settings = settings_of(secure, listener, mechanism)

    with AdminClient(properties=settings) as admin:
        admin.create_topics([NewTopic(topic_name, 1, 1)])
        assert topic_name in admin.list_topics()
    with KafkaProducer(properties=settings) as producer:
        futures = [producer.send(topic_name, value) for value in RECORDS]
        assert [future.get(10).offset for future in futures] == list(range(len(RECORDS)))
    read: list[bytes] = []
    with KafkaConsumer(
        topic_name, properties=settings, group_id=topic_name, auto_offset_reset="earliest"
    ) as consumer:
        deadline = time.monotonic() + 20
        while len(read) < len(RECORDS) and time.monotonic() < deadline:
            for records in consumer.poll(500).values():
                read += [record.value for record in records]

    assert read == RECORDS


@pytest.mark.parametrize("mechanism", [None, "SCRAM-SHA-256"])
def test_client_of_one_node_takes_the_same_settings(
    secure: SecureBroker, mechanism: str | None
) -> None:
    listener = "SSL" if mechanism is None else "SASL_SSL"
    config = parse_client_config(CommonClientConfig, settings_of(secure, listener, mechanism), {})
    node = Node(0, "127.0.0.1", secure.ports[listener])
    client = BlockingNodeClient(
        node,
        client_id="test",
        time=SystemTime(),
        request_timeout_ms=10_000,
        channel_builder=client_channel_builder(config, SystemTime(), client_id="test"),
    )

    response = client.send_and_receive(MetadataRequest(topics=None), 9)

    assert isinstance(response, MetadataResponse)
    assert [(each.host, each.port) for each in response.brokers] == [(node.host, node.port)]
    client.close()


def test_tool_takes_them_from_its_command_config(
    secure: SecureBroker, tmp_path: Path, topic_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "client.properties"
    settings = settings_of(secure, "SASL_SSL", "SCRAM-SHA-512")
    lines = [f"{name}={value}".replace("\\", "\\\\") for name, value in settings.items()]
    file.write_text("\n".join(lines))
    arguments = ["--bootstrap-server", secure.address("SASL_SSL"), "--command-config", str(file)]

    kafka_topics.main([*arguments, "--create", "--topic", topic_name])

    assert f"Created topic {topic_name}." in capsys.readouterr().out


def test_session_is_renewed_as_often_as_it_ends(secure: SecureBroker, topic_name: str) -> None:
    tokens = 0

    def token() -> str:
        nonlocal tokens
        tokens += 1
        return unsecured_token()

    settings = settings_of(secure, "BRIEF", "OAUTHBEARER")
    settings["sasl.login.callback.handler.class"] = token
    # A renewal that the broker does not take for one would fail as a wrong password does.
    with KafkaProducer(properties=settings) as producer:
        deadline = time.monotonic() + 30
        sent = 0
        while tokens < 5 and time.monotonic() < deadline:
            assert producer.send(topic_name, b"x", partition=0).get(10).offset == sent
            sent += 1

    assert tokens >= 5  # two connections, and what was renewed of them


def error_of(secure: SecureBroker, listener: str, **settings: object) -> KafkaError:
    """What each of the clients raises, and soon: the limit is that of a mere time-out."""
    servers = secure.address(listener)
    dotted = {name.replace("_", "."): value for name, value in settings.items()}
    errors: list[KafkaError] = []
    with (
        AdminClient(
            properties=dotted, bootstrap_servers=servers, default_api_timeout_ms=800
        ) as admin,
        pytest.raises(KafkaError) as raised,
    ):
        admin.list_topics()
    errors.append(raised.value)
    with (
        KafkaProducer(properties=dotted, bootstrap_servers=servers, max_block_ms=800) as producer,
        pytest.raises(KafkaError) as raised,
    ):
        producer.send("topic", b"").get(5)
    errors.append(raised.value)
    with (
        KafkaConsumer(
            properties=dotted, bootstrap_servers=servers, default_api_timeout_ms=800
        ) as consumer,
        pytest.raises(KafkaError) as raised,
    ):
        consumer.topics()
    errors.append(raised.value)
    assert len({type(error) for error in errors}) == 1, errors
    for error in errors:
        assert servers in str(error) and "nonsense" not in str(error)
    return errors[0]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_wrong_password_is_told(secure: SecureBroker, mechanism: str) -> None:
    settings = login(mechanism, "nonsense")

    error = error_of(secure, "SASL_PLAINTEXT", security_protocol="SASL_PLAINTEXT", **settings)

    assert isinstance(error, SaslAuthenticationError) and f"by {mechanism} failed" in str(error)
    with (
        KafkaProducer(
            properties=settings,
            bootstrap_servers=secure.address("SASL_PLAINTEXT"),
            security_protocol="SASL_PLAINTEXT",
            transactional_id="wrong",
        ) as producer,
        pytest.raises(SaslAuthenticationError),
    ):
        producer.init_transactions()


def test_untrusted_broker_is_told(secure: SecureBroker) -> None:
    error = error_of(secure, "SSL", security_protocol="SSL")

    assert isinstance(error, SslAuthenticationError) and "is not trusted" in str(error)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_missing_certificate_is_told(secure: SecureBroker, version: str) -> None:
    error = error_of(
        secure, "MUTUAL", security_protocol="SSL", ssl_enabled_protocols=version, **secure.trust
    )

    assert isinstance(error, SslAuthenticationError) and "refused this client" in str(error)


def test_protocol_that_is_not_the_listeners_is_told(secure: SecureBroker) -> None:
    at_tls = error_of(secure, "SSL")
    at_plaintext = error_of(secure, "PLAINTEXT", security_protocol="SSL", **secure.trust)
    with_sasl = error_of(
        secure, "PLAINTEXT", security_protocol="SASL_PLAINTEXT", **login("PLAIN", "nonsense")
    )

    assert isinstance(at_tls, SslAuthenticationError) and "speaks TLS" in str(at_tls)
    assert isinstance(at_plaintext, RequestTimeoutError)
    assert "in the TLS handshake; is its security.protocol another?" in str(at_plaintext)
    assert isinstance(with_sasl, IllegalSaslStateError)
