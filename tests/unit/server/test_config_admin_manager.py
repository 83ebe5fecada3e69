import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.config_resource import AlterOperation, ConfigSource
from kafkapy.common.errors import (
    InvalidConfigurationError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.server.config_admin_manager import (
    Alteration,
    ConfigAdminManager,
    ConfigEntry,
    ResourceType,
)
from kafkapy.server.dynamic_broker_config import DynamicBrokerConfig
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.zk.admin_zk_client import AdminZkClient
from kafkapy.zk.embedded_store import EMBEDDED_STORE_FILE, EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import DEFAULT_ENTITY_NAME, ConfigType
from tests.helpers.mock_time import MockTime

_TOPIC = "t"
_BROKER = "1"


@pytest.fixture
def admin_zk_client(tmp_path: Path, time: MockTime) -> Iterator[AdminZkClient]:
    zk_client = KafkaZkClient(EmbeddedStore(tmp_path / EMBEDDED_STORE_FILE, time), time)
    zk_client.create_top_level_paths()
    yield AdminZkClient(zk_client, rng=random.Random(1))
    zk_client.close()


@pytest.fixture
def dynamic_config() -> DynamicBrokerConfig:
    return DynamicBrokerConfig(KafkaConfig({"broker.id": _BROKER, "log.retention.hours": "2"}))


@pytest.fixture
def configs(
    admin_zk_client: AdminZkClient, dynamic_config: DynamicBrokerConfig
) -> ConfigAdminManager:
    """Of a broker that knows the topic, which the store holds with no settings."""
    admin_zk_client.create_topic_with_assignment(_TOPIC, {}, {0: (1,)}, validate=False)
    state = UpdateMetadataRequest.UpdateMetadataPartitionState(leader=1, isr=[1], replicas=[1])
    metadata_cache = MetadataCache(1)
    metadata_cache.update_metadata(
        0,
        UpdateMetadataRequest(
            topic_states=[
                UpdateMetadataRequest.UpdateMetadataTopicState(
                    topic_name=_TOPIC, partition_states=[state]
                )
            ]
        ),
    )
    return ConfigAdminManager(1, dynamic_config, metadata_cache, admin_zk_client)


def _entry(configs: ConfigAdminManager, name: str) -> ConfigEntry:
    (entry,) = configs.describe(ResourceType.TOPIC, _TOPIC, [name])
    return entry


def _alter(
    configs: ConfigAdminManager,
    name: str,
    operation: AlterOperation,
    value: str | None,
    *,
    validate_only: bool = False,
) -> None:
    configs.alter(
        ResourceType.TOPIC,
        _TOPIC,
        [Alteration(name, operation, value)],
        validate_only=validate_only,
    )


def test_a_setting_in_another_unit_is_told_in_the_topics_own(configs: ConfigAdminManager) -> None:
    entry = _entry(configs, "retention.ms")

    assert (entry.value, entry.source) == ("7200000", ConfigSource.STATIC_BROKER_CONFIG)
    strongest = entry.synonyms[0]
    assert (strongest.name, strongest.value) == ("log.retention.hours", "2")


@pytest.mark.parametrize(
    ("name", "written", "told"),
    [
        ("preallocate", "TRUE", "true"),
        ("retention.ms", " +1000 ", "1000"),
        ("cleanup.policy", " compact , delete ", "compact,delete"),
        ("min.cleanable.dirty.ratio", "1", "1.0"),
    ],
)
def test_a_value_is_told_as_it_is_understood(
    configs: ConfigAdminManager, name: str, written: str, told: str
) -> None:
    _alter(configs, name, AlterOperation.SET, written)

    entry = _entry(configs, name)

    assert entry.value == entry.synonyms[0].value == told


def test_the_last_synonym_is_the_default(configs: ConfigAdminManager) -> None:
    last = _entry(configs, "retention.ms").synonyms[-1]

    assert (last.value, last.source) == ("604800000", ConfigSource.DEFAULT_CONFIG)


def test_replacing_drops_what_is_not_named(
    configs: ConfigAdminManager, admin_zk_client: AdminZkClient
) -> None:
    configs.replace(
        ResourceType.TOPIC, _TOPIC, {"segment.ms": "1", "retention.ms": "2"}, validate_only=False
    )
    configs.replace(ResourceType.TOPIC, _TOPIC, {"segment.ms": "3"}, validate_only=False)

    assert admin_zk_client.fetch_entity_config(ConfigType.TOPIC, _TOPIC) == {"segment.ms": "3"}


@pytest.mark.parametrize(
    ("changes", "policy"),
    [
        ([(AlterOperation.APPEND, "compact")], "delete,compact"),
        ([(AlterOperation.APPEND, "delete")], "delete"),
        ([(AlterOperation.SET, "compact"), (AlterOperation.APPEND, "delete")], "compact,delete"),
        ([(AlterOperation.SET, "compact,delete"), (AlterOperation.SUBTRACT, "delete")], "compact"),
        ([(AlterOperation.SUBTRACT, "delete")], ""),
        ([(AlterOperation.SET, "compact"), (AlterOperation.DELETE, None)], "delete"),
    ],
)
def test_lists_grow_and_shrink_from_what_is_in_force(
    configs: ConfigAdminManager, changes: list[tuple[AlterOperation, str | None]], policy: str
) -> None:
    for operation, value in changes:
        _alter(configs, "cleanup.policy", operation, value)

    assert _entry(configs, "cleanup.policy").value == policy


def test_only_lists_can_be_appended_to(configs: ConfigAdminManager) -> None:
    with pytest.raises(InvalidConfigurationError, match=r"retention\.ms"):
        _alter(configs, "retention.ms", AlterOperation.APPEND, "1")


def test_validating_only_writes_nothing(
    configs: ConfigAdminManager, admin_zk_client: AdminZkClient
) -> None:
    _alter(configs, "retention.ms", AlterOperation.SET, "1", validate_only=True)

    assert admin_zk_client.fetch_entity_config(ConfigType.TOPIC, _TOPIC) == {}


@pytest.mark.parametrize(
    ("resource_type", "name", "error"),
    [
        (ResourceType.TOPIC, "unknown", UnknownTopicOrPartitionError),
        (ResourceType.BROKER, "2", InvalidRequestError),
        (ResourceType.BROKER, "01", InvalidRequestError),
        (77, "x", InvalidRequestError),
    ],
)
def test_a_resource_that_is_not_here_is_refused(
    configs: ConfigAdminManager, resource_type: int, name: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        configs.describe(resource_type, name, None)


def test_settings_of_all_brokers_are_described_alone(
    configs: ConfigAdminManager, admin_zk_client: AdminZkClient
) -> None:
    admin_zk_client.change_broker_config(None, {"num.io.threads": "3"})

    entries = configs.describe(ResourceType.BROKER, "", None)

    assert [(e.name, e.value, e.source) for e in entries] == [
        ("num.io.threads", "3", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
    ]


def test_a_setting_without_a_value_is_told_as_none(configs: ConfigAdminManager) -> None:
    (entry,) = configs.describe(ResourceType.BROKER, _BROKER, ["zookeeper.connect"])

    assert (entry.value, entry.synonyms[-1].value) == (None, None)


@pytest.mark.parametrize("broker_id", [1, None])
def test_stored_setting_that_is_unknown_here_stays_and_is_in_nobodys_way(
    configs: ConfigAdminManager, admin_zk_client: AdminZkClient, broker_id: int | None
) -> None:
    name = "" if broker_id is None else str(broker_id)
    foreign = {"max.connection.creation.rate": "100"}
    admin_zk_client.change_broker_config(broker_id, foreign)

    known = Alteration("log.retention.ms", AlterOperation.SET, "70000")
    configs.alter(ResourceType.BROKER, name, [known], validate_only=False)

    stored = admin_zk_client.fetch_entity_config(ConfigType.BROKER, name or DEFAULT_ENTITY_NAME)
    assert stored == {**foreign, "log.retention.ms": "70000"}
    other = Alteration("max.connection.creation.rate", AlterOperation.SET, "7")
    with pytest.raises(InvalidRequestError, match=r"max\.connection\.creation\.rate"):
        configs.alter(ResourceType.BROKER, name, [other], validate_only=False)
