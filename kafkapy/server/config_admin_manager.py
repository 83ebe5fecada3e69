"""DescribeConfigs and the two ways to alter them, for topics and brokers."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kafkapy.common.config_def import ConfigKey, ConfigType, config_keys
from kafkapy.common.config_resource import AlterOperation, ConfigSource
from kafkapy.common.errors import (
    InvalidConfigurationError,
    InvalidRequestError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.topic import validate_topic_name
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.server.dynamic_broker_config import ConfigValue, DynamicBrokerConfig
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.storage.log_config import LogConfig, validate_topic_config
from kafkapy.zk.admin_zk_client import AdminZkClient
from kafkapy.zk.zk_data import DEFAULT_ENTITY_NAME
from kafkapy.zk.zk_data import ConfigType as EntityType


class ResourceType(IntEnum):
    """Ports: org.apache.kafka.common.config.ConfigResource.Type"""

    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting as DescribeConfigs shows it. `synonyms` begins with the value in force."""

    key: ConfigKey
    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    synonyms: tuple[ConfigValue, ...]

    @property
    def is_sensitive(self) -> bool:
        return self.key.type is ConfigType.PASSWORD


@dataclass(frozen=True, slots=True)
class Alteration:
    name: str
    operation: AlterOperation
    value: str | None


class ConfigAdminManager:
    """Reads settings from where they are in force, and writes alterations to the metadata store.

    Ports: kafka.server.ConfigHelper, kafka.server.ZkAdminManager
    """

    def __init__(
        self,
        broker_id: int,
        dynamic_config: DynamicBrokerConfig,
        metadata_cache: MetadataCache,
        admin_zk_client: AdminZkClient,
    ) -> None:
        self._broker_id = broker_id
        self._dynamic_config = dynamic_config
        self._metadata_cache = metadata_cache
        self._admin_zk_client = admin_zk_client
        # An alteration is made of what is stored: none may come in between.
        self._one_alteration = threading.Lock()

    def describe(
        self, resource_type: int, name: str, wanted: list[str] | None
    ) -> list[ConfigEntry]:
        match _resource_type(resource_type):
            case ResourceType.TOPIC:
                self._require_topic(name)
                entries = self.topic_entries(
                    self._admin_zk_client.fetch_entity_config(EntityType.TOPIC, name)
                )
            case ResourceType.BROKER if name == "":
                entries = self._default_broker_entries()
            case ResourceType.BROKER:
                self._require_this_broker(name)
                entries = self._broker_entries()
        if not wanted:  # an empty list asks for all, as none does
            return entries
        return [entry for entry in entries if entry.name in wanted]

    def topic_entries(self, overrides: dict[str, str]) -> list[ConfigEntry]:
        """Every topic setting: the topic's own value, else the broker's, else the default."""
        entries = []
        for key in config_keys(LogConfig):
            chain = [
                value
                for synonym in key.synonyms
                for value in self._dynamic_config.sources(synonym.name)
            ]
            in_force = key.format(
                getattr(self._dynamic_config.current.topic_defaults, key.field_name)
            )
            source = chain[0].source if chain else ConfigSource.DEFAULT_CONFIG
            if key.name in overrides:
                # As it is understood, not as it was written: " TRUE " is told as "true".
                in_force = key.format(key.parse(overrides[key.name]))
                source = ConfigSource.DYNAMIC_TOPIC_CONFIG
                chain.insert(0, ConfigValue(key.name, in_force, source))
            default_name = key.synonyms[0].name if key.synonyms else key.name
            chain.append(_default(key, default_name))
            entries.append(
                ConfigEntry(key, key.name, in_force, source, read_only=False, synonyms=tuple(chain))
            )
        return entries

    def _broker_entries(self) -> list[ConfigEntry]:
        entries = []
        current = self._dynamic_config.current
        for broker_key in KafkaConfig.broker_keys():
            key = broker_key.key
            chain = [
                value
                for name in broker_key.property_names
                for value in self._dynamic_config.sources(name)
            ]
            entries.append(
                ConfigEntry(
                    key,
                    broker_key.name,
                    _format(key, current.value_of(broker_key)),
                    chain[0].source if chain else ConfigSource.DEFAULT_CONFIG,
                    read_only=not self._dynamic_config.is_dynamic(broker_key.name),
                    synonyms=(*chain, _default(key, broker_key.name)),
                )
            )
        return entries

    def _default_broker_entries(self) -> list[ConfigEntry]:
        """Only what was altered for all brokers."""
        stored = self._admin_zk_client.fetch_entity_config(EntityType.BROKER, DEFAULT_ENTITY_NAME)
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        return [
            ConfigEntry(
                broker_key.key,
                name,
                stored[name],
                source,
                read_only=False,
                synonyms=(ConfigValue(name, stored[name], source),),
            )
            for broker_key in KafkaConfig.broker_keys()
            for name in broker_key.property_names
            if name in stored
        ]

    def validate_topic_config(self, configs: dict[str, str]) -> None:
        """Raises InvalidConfigurationError for overrides that a topic here cannot have."""
        validate_topic_config(configs, self._dynamic_config.current.topic_defaults)

    def replace(
        self, resource_type: int, name: str, configs: dict[str, str | None], *, validate_only: bool
    ) -> None:
        """AlterConfigs: what is not named goes back to its default."""
        without_value = [config for config, value in configs.items() if value is None]
        if without_value:
            raise InvalidRequestError(f"{without_value[0]} has no value")
        self._alter(
            resource_type,
            name,
            lambda _: {config: value for config, value in configs.items() if value is not None},
            validate_only=validate_only,
        )

    def alter(
        self,
        resource_type: int,
        name: str,
        alterations: list[Alteration],
        *,
        validate_only: bool,
    ) -> None:
        """IncrementalAlterConfigs: what is not named stays."""
        require_distinct([alteration.name for alteration in alterations])
        keys = _keys_by_name(_resource_type(resource_type))
        self._alter(
            resource_type,
            name,
            lambda stored: _apply(stored, alterations, keys),
            validate_only=validate_only,
        )

    def _alter(
        self,
        resource_type: int,
        name: str,
        change: Callable[[dict[str, str]], dict[str, str]],
        *,
        validate_only: bool,
    ) -> None:
        with self._one_alteration:
            self._alter_locked(resource_type, name, change, validate_only=validate_only)

    def _alter_locked(
        self,
        resource_type: int,
        name: str,
        change: Callable[[dict[str, str]], dict[str, str]],
        *,
        validate_only: bool,
    ) -> None:
        match _resource_type(resource_type):
            case ResourceType.TOPIC:
                self._require_topic(name)
                configs = change(self._admin_zk_client.fetch_entity_config(EntityType.TOPIC, name))
                self.validate_topic_config(configs)
                if not validate_only:
                    self._admin_zk_client.change_topic_config(name, configs)
            case ResourceType.BROKER:
                if name:
                    self._require_this_broker(name)
                entity = name or DEFAULT_ENTITY_NAME
                stored = self._admin_zk_client.fetch_entity_config(EntityType.BROKER, entity)
                configs = change(stored)
                self._dynamic_config.validate(configs, per_broker=bool(name), stored=stored)
                if not validate_only:
                    self._admin_zk_client.change_broker_config(int(name) if name else None, configs)

    def _require_topic(self, name: str) -> None:
        validate_topic_name(name)
        if not self._metadata_cache.contains_topic(name):
            raise UnknownTopicOrPartitionError(f"Topic {name} does not exist")

    def _require_this_broker(self, name: str) -> None:
        if name != str(self._broker_id):
            raise InvalidRequestError(
                f"Broker {name!r} must be asked itself; this is broker {self._broker_id}"
            )


def require_distinct(names: list[str]) -> None:
    """Raises InvalidRequestError if a setting is altered twice: the order would decide."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidRequestError(f"{repeated[0]} is altered twice in one request")


def _resource_type(code: int) -> ResourceType:
    try:
        return ResourceType(code)
    except ValueError:
        raise InvalidRequestError(
            f"Resource type {code} has no configuration here; topics and brokers have"
        ) from None


def _keys_by_name(resource_type: ResourceType) -> dict[str, ConfigKey]:
    if resource_type is ResourceType.TOPIC:
        return {key.name: key for key in config_keys(LogConfig)}
    return {
        name: broker_key.key
        for broker_key in KafkaConfig.broker_keys()
        for name in broker_key.property_names
    }


def _default(key: ConfigKey, name: str) -> ConfigValue:
    return ConfigValue(name, _format(key, key.default), ConfigSource.DEFAULT_CONFIG)


def _format(key: ConfigKey, value: Any) -> str | None:
    """What is not set has no value, rather than an empty one."""
    return None if value is None else key.format(value)


def _apply(
    stored: dict[str, str], alterations: Iterable[Alteration], keys: dict[str, ConfigKey]
) -> dict[str, str]:
    configs = dict(stored)
    for alteration in alterations:
        name, value = alteration.name, alteration.value
        if alteration.operation is AlterOperation.DELETE:
            configs.pop(name, None)
            continue
        if value is None:
            raise InvalidRequestError(f"{name} has no value")
        if alteration.operation is AlterOperation.SET:
            configs[name] = value
            continue
        key = keys.get(name)
        if key is None or key.type is not ConfigType.LIST:
            raise InvalidConfigurationError(f"{name} is not a list: it can only be set or deleted")
        items = _items(configs.get(name, key.format(key.default)))
        changed = _items(value)
        if alteration.operation is AlterOperation.APPEND:
            items += [item for item in changed if item not in items]
        else:
            items = [item for item in items if item not in changed]
        configs[name] = ",".join(items)
    return configs


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
