"""Settings that all clients have, and how a client's settings are given.

Each client takes Kafka's settings as keyword arguments in snake_case, or as `properties`, a dict
with the dotted names; where both name a setting the keyword wins. Values may be typed or texts.
kafka-python's keywords `sasl_plain_username` and `sasl_plain_password` are taken as what they
stand for, a `sasl_jaas_config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kafkapy.common.config_def import (
    ConfigKey,
    ConfigType,
    Importance,
    InvalidValueError,
    at_least,
    config,
    config_keys,
    not_empty,
    one_of,
)
from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.common.password import HIDDEN, Password
from kafkapy.common.security.sasl.sasl_clients import login_of
from kafkapy.common.security.security_config import SecurityConfig
from kafkapy.metadata.end_point import SecurityProtocol

ConfigT = TypeVar("ConfigT")

USE_ALL_DNS_IPS = "use_all_dns_ips"
RESOLVE_CANONICAL = "resolve_canonical_bootstrap_servers_only"
REBOOTSTRAP = "rebootstrap"

_USERNAME = "sasl_plain_username"
_PASSWORD = "sasl_plain_password"
_INTEGERS = (ConfigType.SHORT, ConfigType.INT, ConfigType.LONG)


@dataclass(frozen=True, slots=True)
class CommonClientConfig(SecurityConfig):
    """The settings of every client. Its secrets show neither in repr nor in error texts.

    Ports: org.apache.kafka.clients.CommonClientConfigs
    """

    bootstrap_servers: tuple[str, ...] = config(
        "bootstrap.servers",
        (),
        not_empty,
        importance=Importance.HIGH,
        doc="Brokers to learn the cluster from, as host:port; one that answers is enough.",
    )
    client_id: str = config(
        "client.id", "", doc="The name by which brokers know this client in logs and quotas."
    )
    client_dns_lookup: str = config(
        "client.dns.lookup",
        USE_ALL_DNS_IPS,
        one_of(USE_ALL_DNS_IPS, RESOLVE_CANONICAL),
        doc="Whether bootstrap names stand for all their addresses or for the canonical names.",
    )
    metadata_max_age_ms: int = config(
        "metadata.max.age.ms",
        300_000,
        at_least(0),
        type=ConfigType.LONG,
        importance=Importance.LOW,
        doc="Metadata is refreshed at least this often.",
    )
    metadata_recovery_strategy: str = config(
        "metadata.recovery.strategy",
        "none",
        one_of("none", REBOOTSTRAP),
        importance=Importance.LOW,
        doc="What to do when no known broker can be reached: nothing, or start from the bootstrap.",
    )
    send_buffer_bytes: int = config(
        "send.buffer.bytes", 128 * 1024, at_least(-1), doc="SO_SNDBUF; -1: the system's default."
    )
    receive_buffer_bytes: int = config(
        "receive.buffer.bytes", 64 * 1024, at_least(-1), doc="SO_RCVBUF; -1: the system's default."
    )
    reconnect_backoff_ms: int = config(
        "reconnect.backoff.ms",
        50,
        at_least(0),
        type=ConfigType.LONG,
        importance=Importance.LOW,
        doc="The wait before connecting again to a broker after the first failure.",
    )
    reconnect_backoff_max_ms: int = config(
        "reconnect.backoff.max.ms",
        1_000,
        at_least(0),
        type=ConfigType.LONG,
        importance=Importance.LOW,
        doc="The longest wait before connecting again: it doubles with each failure in a row.",
    )
    retry_backoff_ms: int = config(
        "retry.backoff.ms",
        100,
        at_least(0),
        type=ConfigType.LONG,
        importance=Importance.LOW,
        doc="The wait before a failed request is tried again.",
    )
    retry_backoff_max_ms: int = config(
        "retry.backoff.max.ms",
        1_000,
        at_least(0),
        type=ConfigType.LONG,
        importance=Importance.LOW,
        doc="The longest wait before a retry: it doubles with each failure in a row.",
    )
    request_timeout_ms: int = config(
        "request.timeout.ms",
        30_000,
        at_least(0),
        doc="How long a request may stay without a response.",
    )
    socket_connection_setup_timeout_ms: int = config(
        "socket.connection.setup.timeout.ms",
        10_000,
        at_least(0),
        type=ConfigType.LONG,
        doc="How long making a connection may take.",
    )
    socket_connection_setup_timeout_max_ms: int = config(
        "socket.connection.setup.timeout.max.ms",
        30_000,
        at_least(0),
        type=ConfigType.LONG,
        doc="The most that making a connection may take: it doubles with each failure in a row.",
    )
    connections_max_idle_ms: int = config(
        "connections.max.idle.ms",
        540_000,
        at_least(-1),
        type=ConfigType.LONG,
        doc="Connections unused for so long are closed; -1: never.",
    )
    security_protocol: str = config(
        "security.protocol",
        SecurityProtocol.PLAINTEXT.name,
        one_of(*(protocol.name for protocol in SecurityProtocol)),
        doc="How to talk to brokers: with TLS or without, with SASL or without.",
    )


def parse_client_config(
    cls: type[ConfigT], properties: Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> ConfigT:
    """The settings of a client; InvalidConfigurationError names one that is unknown or wrong."""
    by_name = {key.name: key for key in config_keys(cls)}
    by_keyword = {key.field_name: key for key in by_name.values()}
    values: dict[str, Any] = {}
    for name, value in (properties or {}).items():
        key = by_name.get(name)
        if key is None:
            raise InvalidConfigurationError(f"Unknown configuration {name!r}")
        values[key.field_name] = _typed(key, value)
    for keyword, value in _with_login(keywords).items():
        key = by_keyword.get(keyword)
        if key is None:
            raise InvalidConfigurationError(f"Unknown configuration {keyword!r}")
        values[keyword] = _typed(key, value)
    missing = by_keyword["bootstrap_servers"]
    if missing.field_name not in values:
        missing.validate(missing.default)
    return cls(**values)


def _with_login(keywords: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keywords, with kafka-python's for a name and a password as what they stand for."""
    if not any(keyword in keywords for keyword in (_USERNAME, _PASSWORD)):
        return keywords
    others = {k: v for k, v in keywords.items() if k not in (_USERNAME, _PASSWORD)}
    username, password = keywords.get(_USERNAME), keywords.get(_PASSWORD)
    if not isinstance(username, str) or not isinstance(password, str):
        raise InvalidConfigurationError(
            f"{_USERNAME} and {_PASSWORD} belong together, and both are texts"
        )
    if "sasl_jaas_config" in others:
        raise InvalidConfigurationError(f"{_USERNAME} and sasl.jaas.config exclude each other")
    return {**others, "sasl_jaas_config": login_of(username, password)}


def _typed(key: ConfigKey, value: Any) -> Any:
    if isinstance(value, str) and key.type is not ConfigType.CLASS:
        return key.parse(value)
    if value is None and key.optional:
        return None
    match key.type:
        case ConfigType.BOOLEAN:
            good = isinstance(value, bool)
        case ConfigType.DOUBLE:
            good = isinstance(value, int | float) and not isinstance(value, bool)
        case ConfigType.LIST:
            good = isinstance(value, list | tuple | set | frozenset)
            value = tuple(value) if good else value
        case ConfigType.CLASS:
            good = not isinstance(value, str)
        case ConfigType.PASSWORD:
            good = isinstance(value, Password)
        case kind if kind in _INTEGERS:
            good = isinstance(value, int) and not isinstance(value, bool)
            if good:
                return key.parse(str(int(value)))  # which knows how many bits it may have
        case _:
            good = False
    if not good:
        # Whatever was meant as a password is a secret.
        shown = HIDDEN if key.type is ConfigType.PASSWORD else repr(value)
        raise InvalidValueError(
            key.name, shown, f"expected {key.type.name.lower()}, not {type(value).__name__}"
        )
    key.validate(value)
    return value
