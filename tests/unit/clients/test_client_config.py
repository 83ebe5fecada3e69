import pytest

from kafkapy.clients.client_config import CommonClientConfig, parse_client_config
from kafkapy.clients.client_utils import parse_and_validate_addresses
from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.common.password import Password
from kafkapy.common.security.sasl.jaas_config import JaasConfig


def parse(properties: dict[str, object] | None = None, **keywords: object) -> CommonClientConfig:
    return parse_client_config(CommonClientConfig, properties, keywords)


@pytest.mark.parametrize("servers", ["a:1,b:2", ["a:1", "b:2"], ("a:1", "b:2")])
def test_servers_are_a_text_or_a_list(servers: object) -> None:
    assert parse(bootstrap_servers=servers).bootstrap_servers == ("a:1", "b:2")


def test_keywords_win_over_properties() -> None:
    config = parse(
        {"bootstrap.servers": "a:1", "request.timeout.ms": "5", "retry.backoff.ms": 7},
        request_timeout_ms=9,
    )

    assert (config.request_timeout_ms, config.retry_backoff_ms) == (9, 7)
    assert config.bootstrap_servers == ("a:1",)


@pytest.mark.parametrize(
    ("keywords", "complaint"),
    [
        ({}, r"bootstrap\.servers"),
        ({"bootstrap_servers": []}, r"bootstrap\.servers"),
        ({"bootstrap_servers": 9092}, r"bootstrap\.servers.*list"),
        ({"bootstrap_servers": "a:1", "bootstrap.servers": "a:1"}, r"bootstrap\.servers"),
        ({"bootstrap_servers": "a:1", "client_id": 5}, r"client\.id.*string.*int"),
        ({"bootstrap_servers": "a:1", "request_timeout_ms": None}, r"request\.timeout\.ms"),
        ({"bootstrap_servers": "a:1", "request_timeout_ms": -1}, r"request\.timeout\.ms"),
        ({"bootstrap_servers": "a:1", "security_protocol": "TLS"}, r"security\.protocol"),
        ({"bootstrap_servers": "a:1", "ssl_enabled_protocols": "SSLv3"}, r"ssl\.enabled\.proto"),
        ({"bootstrap_servers": "a:1", "sasl_plain_username": "a"}, "sasl_plain_password belong"),
        ({"bootstrap_servers": "a:1", "sasl_plain_password": "a"}, "sasl_plain_username and"),
        (
            {
                "bootstrap_servers": "a:1",
                "sasl_plain_username": "a",
                "sasl_plain_password": "b",
                "sasl_jaas_config": "c",
            },
            r"sasl\.jaas\.config exclude",
        ),
        (
            {"bootstrap_servers": "a:1", "ssl_key_password": 1234},
            r"Invalid value \[hidden\] for configuration ssl\.key\.password: .*not int",
        ),
    ],
)
def test_bad_setting_is_named(keywords: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=complaint):
        parse(**keywords)


def test_secrets_show_neither_in_repr_nor_in_text() -> None:
    secrets = {
        "sasl.jaas.config": "s3cret1",
        "ssl.key.password": "s3cret2",
        "ssl.keystore.key": "s3cret3",
        "ssl.keystore.certificate.chain": "s3cret4",
        "ssl.truststore.certificates": "s3cret5",
    }

    config = parse({"bootstrap.servers": "a:1", **secrets})

    assert "s3cret" not in f"{config!r} {config}"
    assert config.ssl_key_password == Password("s3cret2")


def test_name_and_password_of_kafka_python_are_taken_as_what_they_stand_for() -> None:
    config = parse(
        {"bootstrap.servers": "a:1"},
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="alice",
        sasl_plain_password='s3"cret',
    )

    assert config.sasl_jaas_config is not None
    login = JaasConfig.parse(config.sasl_jaas_config)
    assert dict(login.options) == {"username": "alice", "password": 's3"cret'}


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("127.0.0.1:9092", ("127.0.0.1", 9092)),
        ("PLAINTEXT://127.0.0.1:9092", ("127.0.0.1", 9092)),
        ("[::1]:9092", ("::1", 9092)),
    ],
)
def test_addresses_are_read(server: str, address: tuple[str, int]) -> None:
    assert parse_and_validate_addresses([server], "use_all_dns_ips") == [address]


@pytest.mark.parametrize("server", ["host", "host:", ":9092", "::1:9092", "host:0", "a b:1"])
def test_malformed_address_is_named(server: str) -> None:
    with pytest.raises(InvalidConfigurationError, match="expected host:port"):
        parse_and_validate_addresses([server], "use_all_dns_ips")


def test_servers_without_an_address_are_passed_over_while_there_are_others() -> None:
    servers = ["nowhere.invalid:1", "127.0.0.1:2"]

    assert parse_and_validate_addresses(servers, "use_all_dns_ips") == [("127.0.0.1", 2)]
    with pytest.raises(InvalidConfigurationError, match=r"nowhere\.invalid:1"):
        parse_and_validate_addresses(servers[:1], "use_all_dns_ips")
