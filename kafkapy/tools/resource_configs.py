"""Settings of topics, brokers and their loggers, as kafka-configs shows and changes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafkapy.clients.admin import (
    AdminClient,
    AlterConfigOp,
    AlterOperation,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
)
from kafkapy.common.command_line import fail
from kafkapy.tools.admin_connection import existing_topics
from kafkapy.tools.config_entities import ConfigEntity, EntityType

_RESOURCE_TYPES = {
    EntityType.TOPIC: ConfigResourceType.TOPIC,
    EntityType.BROKER: ConfigResourceType.BROKER,
    EntityType.BROKER_LOGGER: ConfigResourceType.BROKER_LOGGER,
}


class ResourceConfigs:
    """Works through an admin client. For one thread.

    Ports: kafka.admin.ConfigCommand
    """

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin  # constant after construction

    def describe(self, entity: ConfigEntity, *, describe_all: bool) -> None:
        for each in self._entities(entity):
            entries = self._entries(each, describe_all=describe_all)
            if each.is_default:
                print(f"Default configs for {each.entity_type.value} in the cluster are:")
            else:
                which = "All" if describe_all else "Dynamic"
                print(f"{which} configs for {each.entity_type.singular} {each.name} are:")
            for name in sorted(entries):
                print(_line(entries[name]))

    def alter(
        self, entity: ConfigEntity, added: Mapping[str, str], deleted: Collection[str]
    ) -> None:
        existing = self._entries(entity, describe_all=False)
        if entity.entity_type is EntityType.BROKER_LOGGER:
            unknown = [name for name in (*added, *deleted) if name not in existing]
            if unknown:
                fail(f"Broker {entity.name} has no loggers {', '.join(unknown)}")
        unset = [name for name in deleted if name not in existing]
        if unset:
            fail(f"Not set, so they cannot be deleted: {', '.join(unset)}")
        self._admin.incremental_alter_configs(
            {
                _resource(entity): [
                    *(AlterConfigOp(name, value) for name, value in added.items()),
                    *(AlterConfigOp(name, None, AlterOperation.DELETE) for name in deleted),
                ]
            }
        )

    def _entities(self, entity: ConfigEntity) -> list[ConfigEntity]:
        """Itself, or all of its type."""
        kind = entity.entity_type
        if not entity.is_all:
            return [entity]
        if kind is EntityType.TOPIC:
            return [ConfigEntity(kind, topic) for topic in existing_topics(self._admin)]
        brokers = sorted(node.id for node in self._admin.describe_cluster().nodes)
        entities = [ConfigEntity(kind, str(broker)) for broker in brokers]
        if kind is EntityType.BROKER:
            entities.append(ConfigEntity(kind, None, is_default=True))
        return entities

    def _entries(self, entity: ConfigEntity, *, describe_all: bool) -> dict[str, ConfigEntry]:
        resource = _resource(entity)
        described = self._admin.describe_configs([resource], include_synonyms=True)[resource]
        source = None if describe_all else _OWN_SOURCES.get(entity.entity_type)
        if entity.is_default:
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
        return {
            name: entry
            for name, entry in described.items()
            if source is None or entry.source is source
        }


# Where what was set for the entity itself comes from; all settings of a logger are its own.
_OWN_SOURCES = {
    EntityType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    EntityType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
}


def _resource(entity: ConfigEntity) -> ConfigResource:
    return ConfigResource(_RESOURCE_TYPES[entity.entity_type], entity.name or "")


def _line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(
        f"{synonym.source.name}:{synonym.name}={_text(synonym.value)}" for synonym in entry.synonyms
    )
    sensitive = "true" if entry.is_sensitive else "false"
    value = _text(entry.value)
    return f"  {entry.name}={value} sensitive={sensitive} synonyms={{{synonyms}}}"


def _text(value: str | None) -> str:
    return "null" if value is None else value
