"""Settings of topics, brokers and other resources."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from kafkapy.common.config_def import ConfigType
from kafkapy.common.config_resource import AlterOperation, ConfigSource


class ConfigResourceType(IntEnum):
    """Ports: org.apache.kafka.common.config.ConfigResource.Type"""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """What has settings: a topic by name, a broker by id; a broker named "" is all brokers.

    Ports: org.apache.kafka.common.config.ConfigResource
    """

    resource_type: ConfigResourceType
    name: str

    @property
    def broker_id(self) -> int | None:
        """The only broker that can answer for it, if that is so."""
        is_broker = self.resource_type is ConfigResourceType.BROKER and self.name != ""
        if is_broker or self.resource_type is ConfigResourceType.BROKER_LOGGER:
            return int(self.name)
        return None

    def __post_init__(self) -> None:
        try:
            _ = self.broker_id
        except ValueError:
            raise ValueError(
                f"{self.resource_type.name} {self.name!r}: the name must be a broker id"
            ) from None

    def __str__(self) -> str:
        return f"{self.resource_type.name} {self.name!r}"


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A value that is in force, or would be without those before it.

    Ports: org.apache.kafka.clients.admin.ConfigEntry.ConfigSynonym
    """

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting. The value of a sensitive one is never told.

    Ports: org.apache.kafka.clients.admin.ConfigEntry
    """

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool = False
    is_read_only: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: ConfigType | None = None
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT_CONFIG


@dataclass(frozen=True, slots=True)
class AlterConfigOp:
    """A change of one setting: by default, to set it.

    Ports: org.apache.kafka.clients.admin.AlterConfigOp
    """

    name: str
    value: str | None
    op_type: AlterOperation = AlterOperation.SET
