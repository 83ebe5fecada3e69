"""Which SASL client the settings ask for."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.common.config_def import InvalidValueError
from kafkapy.common.password import HIDDEN, Password
from kafkapy.common.security.sasl.jaas_config import JaasConfig, quoted
from kafkapy.common.security.sasl.oauth_bearer_sasl_client import OAuthBearerSaslClient
from kafkapy.common.security.sasl.plain_sasl_client import PlainSaslClient
from kafkapy.common.security.sasl.sasl_client import SaslClient
from kafkapy.common.security.sasl.scram_mechanism import ScramMechanism
from kafkapy.common.security.sasl.scram_sasl_client import ScramSaslClient
from kafkapy.common.security.security_config import SecurityConfig

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
_SCRAM = {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}
_SUPPORTED = (PLAIN, *_SCRAM, OAUTHBEARER)

_PACKAGE = "org.apache.kafka.common.security."
PLAIN_LOGIN_MODULE = _PACKAGE + "plain.PlainLoginModule"
_SCRAM_LOGIN_MODULE = _PACKAGE + "scram.ScramLoginModule"
# Either gives a name and a password, and Kafka takes either for every mechanism that needs these.
_LOGIN_MODULES = (PLAIN_LOGIN_MODULE, _SCRAM_LOGIN_MODULE)


def sasl_client_factory(config: SecurityConfig) -> Callable[[], SaslClient]:
    """Makes the SASL client of each connection; InvalidValueError names the setting."""
    mechanism = config.sasl_mechanism
    if mechanism not in _SUPPORTED:
        raise InvalidValueError(
            "sasl.mechanism", mechanism, f"supported are {', '.join(_SUPPORTED)}"
        )
    if mechanism == OAUTHBEARER:
        return _token_client_factory(config)
    if config.sasl_jaas_config is None:
        raise InvalidValueError(
            "sasl.jaas.config",
            "",
            f"it is not set, and {mechanism} needs the username and the password in it",
        )
    login = JaasConfig.parse(config.sasl_jaas_config)
    if login.login_module not in _LOGIN_MODULES:
        raise InvalidValueError(
            "sasl.jaas.config",
            HIDDEN,
            f"the login module is {login.login_module}, not one of {', '.join(_LOGIN_MODULES)}",
        )
    username, password = login.option("username"), Password(login.option("password"))
    if mechanism == PLAIN:
        return lambda: PlainSaslClient(username, password)
    is_token = login.options.get("tokenauth", "").lower() == "true"
    return lambda: ScramSaslClient(
        _SCRAM[mechanism], username, password, is_delegation_token=is_token
    )


def login_of(username: str, password: str) -> Password:
    """The sasl.jaas.config that gives this name and this password."""
    options = f"username={quoted(username)} password={quoted(password)}"
    return Password(f"{PLAIN_LOGIN_MODULE} required {options};")


def _token_client_factory(config: SecurityConfig) -> Callable[[], SaslClient]:
    new_token = config.sasl_login_callback_handler_class
    if new_token is None:
        raise InvalidValueError(
            "sasl.login.callback.handler.class",
            "",
            "it is not set, and OAUTHBEARER needs a function there that returns a token",
        )
    return lambda: OAuthBearerSaslClient(Password(new_token()))
