import pytest

from kafkapy.common.config_resource import ConfigSource
from kafkapy.common.errors import InvalidRequestError
from kafkapy.server.dynamic_broker_config import DynamicBrokerConfig
from kafkapy.server.kafka_config import KafkaConfig

_THREADS = "num.io.threads"


@pytest.fixture
def config() -> DynamicBrokerConfig:
    return DynamicBrokerConfig(KafkaConfig({_THREADS: "4", "broker.id": "1"}))


def _threads(config: DynamicBrokerConfig) -> int:
    return config.current.broker.num_io_threads


def test_a_setting_of_the_broker_is_stronger_than_one_of_all_than_a_static_one(
    config: DynamicBrokerConfig,
) -> None:
    assert _threads(config) == 4

    config.update_default_config({_THREADS: "5"})
    assert _threads(config) == 5

    config.update_broker_config({_THREADS: "6"})
    assert _threads(config) == 6


def test_a_setting_taken_back_uncovers_the_next(config: DynamicBrokerConfig) -> None:
    config.update_default_config({_THREADS: "5"})
    config.update_broker_config({_THREADS: "6"})

    config.update_broker_config({})
    assert _threads(config) == 5

    config.update_default_config({})
    assert _threads(config) == 4


def test_whoever_wants_to_know_is_told_of_every_change(config: DynamicBrokerConfig) -> None:
    told: list[int] = []
    config.add_reconfigurable(lambda current: told.append(current.broker.num_io_threads))

    config.update_default_config({_THREADS: "5"})
    config.update_broker_config({_THREADS: "6"})

    assert told == [5, 6]


def test_stored_settings_that_cannot_be_used_change_nothing(config: DynamicBrokerConfig) -> None:
    told: list[KafkaConfig] = []
    config.add_reconfigurable(told.append)

    config.update_broker_config({_THREADS: "none"})

    assert _threads(config) == 4
    assert told == []


def test_sources_are_told_the_strongest_first(config: DynamicBrokerConfig) -> None:
    config.update_default_config({_THREADS: "5"})
    config.update_broker_config({_THREADS: "6"})

    assert [(s.value, s.source) for s in config.sources(_THREADS)] == [
        ("6", ConfigSource.DYNAMIC_BROKER_CONFIG),
        ("5", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("4", ConfigSource.STATIC_BROKER_CONFIG),
    ]
    assert config.sources("log.retention.ms") == []


@pytest.mark.parametrize("name", [_THREADS, "log.retention.ms", "message.max.bytes"])
def test_some_settings_are_dynamic(config: DynamicBrokerConfig, name: str) -> None:
    assert config.is_dynamic(name)
    config.validate({name: "100000"}, per_broker=True)


@pytest.mark.parametrize("name", ["listeners", "broker.id", "log.dirs", "no.such.config"])
def test_others_are_refused(config: DynamicBrokerConfig, name: str) -> None:
    assert not config.is_dynamic(name)
    with pytest.raises(InvalidRequestError, match=name):
        config.validate({name: "1"}, per_broker=False)


@pytest.mark.parametrize("value", ["0", "-1", "x", ""])
def test_an_illegal_value_is_refused_by_name(config: DynamicBrokerConfig, value: str) -> None:
    with pytest.raises(InvalidRequestError, match=_THREADS):
        config.validate({_THREADS: value}, per_broker=True)


def test_validating_changes_nothing(config: DynamicBrokerConfig) -> None:
    config.validate({_THREADS: "9"}, per_broker=True)

    assert _threads(config) == 4


def test_a_change_for_all_brokers_is_judged_by_what_would_be_in_force_here(
    config: DynamicBrokerConfig,
) -> None:
    judged: list[tuple[int, int]] = []
    config.add_reconfigurable(
        lambda _: None,
        validate=lambda old, new: judged.append(
            (old.broker.num_io_threads, new.broker.num_io_threads)
        ),
    )
    config.update_default_config({_THREADS: "6"})
    config.update_broker_config({_THREADS: "9"})

    config.validate({"log.segment.bytes": "100000"}, per_broker=False)
    config.validate({_THREADS: "12"}, per_broker=False)
    config.validate({"log.segment.bytes": "100000"}, per_broker=True)

    assert judged == [(9, 9), (9, 9), (9, 6)]


def test_a_setting_for_all_brokers_must_be_legal_even_where_another_covers_it(
    config: DynamicBrokerConfig,
) -> None:
    config.update_broker_config({_THREADS: "9"})

    with pytest.raises(InvalidRequestError):
        config.validate({_THREADS: "none"}, per_broker=False)
