import pytest

from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.common.password import Password
from kafkapy.common.security.sasl.sasl_client import SaslError
from kafkapy.common.security.sasl.sasl_clients import login_of, sasl_client_factory
from kafkapy.common.security.security_config import SecurityConfig

PACKAGE = "org.apache.kafka.common.security."
PLAIN = f'{PACKAGE}plain.PlainLoginModule required username="alice" password="s3cret";'
SCRAM = (
    f'{PACKAGE}scram.ScramLoginModule required username="bob" password="s3cret" tokenauth="{{}}";'
)


def config_of(mechanism: str, jaas: str | None) -> SecurityConfig:
    return SecurityConfig(
        sasl_mechanism=mechanism, sasl_jaas_config=None if jaas is None else Password(jaas)
    )


def test_plain_sends_name_and_password_and_expects_no_more() -> None:
    sasl = sasl_client_factory(config_of("PLAIN", PLAIN))()

    assert sasl.initial_response() == b"\0alice\0s3cret"
    assert sasl.respond(b"") is None
    with pytest.raises(SaslError):
        sasl.respond(b"more")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("token", "end"), [("true", b",tokenauth=true"), ("false", b"")])
def test_scram_takes_its_login_module(mechanism: str, token: str, end: bytes) -> None:
    sasl = sasl_client_factory(config_of(mechanism, SCRAM.format(token)))()

    first = sasl.initial_response()
    assert first.startswith(b"n,,n=bob,r=")
    assert first.endswith(b",tokenauth=true") == bool(end)


def test_oauthbearer_shows_a_token_of_each_connection() -> None:
    tokens = iter(["t1", "t2"])
    config = SecurityConfig(
        sasl_mechanism="OAUTHBEARER", sasl_login_callback_handler_class=lambda: next(tokens)
    )
    new_client = sasl_client_factory(config)

    sasl = new_client()
    assert sasl.initial_response() == b"n,,\x01auth=Bearer t1\x01\x01"
    assert sasl.respond(b'{"status":"invalid_token"}') == b"\x01"
    assert sasl.respond(b"") is None
    assert new_client().initial_response() == b"n,,\x01auth=Bearer t2\x01\x01"


@pytest.mark.parametrize(
    ("mechanism", "jaas", "setting"),
    [
        ("GSSAPI", PLAIN, "GSSAPI for configuration sasl.mechanism: supported are PLAIN, SCRAM-"),
        ("scram-sha-256", PLAIN, "configuration sasl.mechanism"),
        ("PLAIN", None, "sasl.jaas.config: it is not set"),
        ("SCRAM-SHA-512", "nonsense", "configuration sasl.jaas.config"),
        ("PLAIN", PLAIN.replace("username", "user"), "the option username is missing"),
        ("PLAIN", PLAIN.replace("Plain", "Other"), "the login module is .*OtherLoginModule"),
        ("OAUTHBEARER", PLAIN, "sasl.login.callback.handler.class: it is not set"),
    ],
)
def test_wrong_setting_is_named(mechanism: str, jaas: str | None, setting: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=setting) as raised:
        sasl_client_factory(config_of(mechanism, jaas))

    assert "s3cret" not in str(raised.value)


def test_login_of_a_name_and_a_password_is_read_back() -> None:
    config = SecurityConfig(sasl_mechanism="PLAIN", sasl_jaas_config=login_of('a"b', "c\\;d"))

    assert sasl_client_factory(config)().initial_response() == b'\0a"b\0c\\;d'
