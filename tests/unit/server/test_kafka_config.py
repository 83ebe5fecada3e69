import pytest

from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.common.metrics.naming import MetricsNaming
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.server.kafka_config import KafkaConfig

TWO_LISTENERS = {
    "listeners": "INTERNAL://127.0.0.1:0,EXTERNAL://[::1]:9093",
    "listener.security.protocol.map": "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT",
}


def test_defaults_need_no_property() -> None:
    config = KafkaConfig({})

    assert config.listeners == (EndPoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "", 9092),)
    assert config.inter_broker_listener_name == "PLAINTEXT"
    assert config.metrics_naming is MetricsNaming.JMX_EXPORTER


def test_listeners_are_taken_apart() -> None:
    config = KafkaConfig(TWO_LISTENERS)

    assert [(e.listener_name, e.host, e.port) for e in config.listeners] == [
        ("INTERNAL", "127.0.0.1", 0),
        ("EXTERNAL", "::1", 9093),
    ]


def test_a_port_of_zero_is_advertised_as_the_port_that_was_taken() -> None:
    config = KafkaConfig(TWO_LISTENERS)

    advertised = config.advertised_listeners({"INTERNAL": 4711, "EXTERNAL": 9093})

    assert [str(e) for e in advertised] == ["INTERNAL://127.0.0.1:4711", "EXTERNAL://[::1]:9093"]


def test_advertised_listeners_take_the_place_of_listeners() -> None:
    config = KafkaConfig({"advertised.listeners": "PLAINTEXT://kafka.example:19092"})

    (advertised,) = config.advertised_listeners({"PLAINTEXT": 9092})

    assert str(advertised) == "PLAINTEXT://kafka.example:19092"


def test_a_wildcard_address_is_not_advertised() -> None:
    (advertised,) = KafkaConfig({"listeners": "PLAINTEXT://0.0.0.0:9092"}).advertised_listeners({})

    assert advertised.host not in ("", "0.0.0.0")


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"listeners": "localhost:9092"}, "listeners"),
        ({"listeners": "PLAINTEXT://localhost"}, "listeners"),
        ({"listeners": "PLAINTEXT://localhost:99999"}, "listeners"),
        ({"listeners": "OTHER://localhost:9092"}, "listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}, "listeners"),
        ({"listeners": ""}, "listeners"),
        (
            {
                "listeners": "PLAINTEXT://a:1,B://a:1",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,B:PLAINTEXT",
            },
            "listeners",
        ),
        ({"listener.security.protocol.map": "A:MAGIC"}, "listener.security.protocol.map"),
        (
            {
                "listeners": "SSL://localhost:9092",
                "listener.security.protocol.map": "SSL:SSL",
            },
            "SSL is not supported",
        ),
        ({"inter.broker.listener.name": "NONE"}, "inter.broker.listener.name"),
        ({"control.plane.listener.name": "NONE"}, "control.plane.listener.name"),
        ({"control.plane.listener.name": "PLAINTEXT"}, "control.plane.listener.name"),
        ({"broker.id": "1001"}, "broker.id"),
        ({"num.io.threads": "0"}, "num.io.threads"),
        ({"prometheus.port": "-2"}, "prometheus.port"),
        ({"metrics.naming": "graphite"}, "metrics.naming"),
        ({"log.retention.hours": "long"}, "log.retention.hours"),
        ({"log.retention.hours": "0"}, "log.retention.ms"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"message.max.bytes": "-1"}, "message.max.bytes"),
        ({"cpu.affinity": "first"}, "cpu.affinity"),
        ({"cpu.affinity": "auto,1"}, "cpu.affinity"),
    ],
)
def test_a_bad_property_is_refused_by_name(properties: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidConfigurationError) as refused:
        KafkaConfig(properties)

    assert named in str(refused.value)


def test_advertising_a_listener_that_is_not_there_is_refused() -> None:
    config = KafkaConfig({**TWO_LISTENERS, "advertised.listeners": "PLAINTEXT://a:1"})

    with pytest.raises(InvalidConfigurationError, match=r"advertised\.listeners"):
        config.advertised_listeners({})


def test_topic_settings_are_read_under_the_brokers_names_only() -> None:
    config = KafkaConfig({"retention.ms": "1", "log.retention.hours": "2"})

    assert config.topic_defaults.retention_ms == 7_200_000
    assert config.unknown_properties() == ["retention.ms"]


def test_an_unknown_property_is_reported_and_not_refused() -> None:
    config = KafkaConfig({"num.io.treads": "4", "log.dirs": "/x", "log.dir": "/y"})

    assert config.unknown_properties() == ["num.io.treads"]


def test_a_listener_may_have_a_limit_of_its_own() -> None:
    name = "listener.name.internal.max.connections"

    assert KafkaConfig({**TWO_LISTENERS, name: "7"}).listener_max_connections() == {"INTERNAL": 7}
    with pytest.raises(InvalidConfigurationError, match=name):
        KafkaConfig({**TWO_LISTENERS, name: "few"}).listener_max_connections()


def test_every_setting_has_one_declaration_and_a_value() -> None:
    config = KafkaConfig({})
    keys = list(KafkaConfig.broker_keys())
    names = [name for key in keys for name in key.property_names]

    assert len(names) == len(set(names))
    for key in keys:
        assert key.key.doc
        assert config.value_of(key) == key.key.default


@pytest.mark.parametrize(
    ("value", "kept", "fixed"),
    [(None, True, set()), ("auto", True, set()), ("", False, set()), ("1, 3", False, {1, 3})],
)
def test_cores_are_chosen_named_or_left_to_the_system(
    value: str | None, kept: bool, fixed: set[int]
) -> None:
    config = KafkaConfig({} if value is None else {"cpu.affinity": value})

    assert config.is_kept_on_a_core is kept
    assert config.fixed_cores == fixed
