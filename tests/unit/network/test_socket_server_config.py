import pytest

from kafkapy.common.config_def import parse
from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.network.socket_server_config import SocketServerConfig


def test_defaults_hold_without_properties() -> None:
    config = parse(SocketServerConfig, {})

    assert config == SocketServerConfig()
    assert config.num_network_threads == 1
    assert config.queued_max_requests == 500
    assert config.socket_request_max_bytes == 100 * 1024 * 1024


def test_properties_are_read_by_kafkas_names() -> None:
    config = parse(
        SocketServerConfig,
        {
            "num.network.threads": "3",
            "queued.max.request.bytes": "1000000",
            "connections.max.idle.ms": "-1",
            "max.connections.per.ip.overrides": "localhost:5, 10.0.0.1:7",
        },
    )

    assert config.num_network_threads == 3
    assert config.queued_max_request_bytes == 1_000_000
    assert config.connections_max_idle_ms == -1
    assert config.connections_per_ip_overrides() == {"localhost": 5, "10.0.0.1": 7}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.network.threads", "0"),
        ("queued.max.requests", "0"),
        ("queued.max.request.bytes", "0"),
        ("socket.request.max.bytes", "0"),
        ("socket.send.buffer.bytes", "-2"),
        ("max.connections.per.ip", "0"),
        ("max.connections.per.ip.overrides", "localhost"),
        ("max.connections.per.ip.overrides", ":5"),
        ("max.connections.per.ip.overrides", "localhost:many"),
    ],
)
def test_bad_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=name.replace(".", r"\.")):
        parse(SocketServerConfig, {name: value})
