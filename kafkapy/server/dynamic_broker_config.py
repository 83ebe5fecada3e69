"""Broker settings that can be changed while it runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafkapy.common.config_def import config_keys
from kafkapy.common.config_resource import ConfigSource
from kafkapy.common.errors import InvalidConfigurationError, InvalidRequestError
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.storage.log_config import LogConfig

log = logging.getLogger(__name__)

# All brokers of a cluster must agree on it.
_STATIC_TOPIC_DEFAULTS = {"log.message.format.version"}

Reconfigurable = Callable[[KafkaConfig], None]
# Given the settings in force and those wanted; raises InvalidConfigurationError.
ValidateChange = Callable[[KafkaConfig, KafkaConfig], None]


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """One property as one source sets it."""

    name: str
    value: str | None
    source: ConfigSource


class DynamicBrokerConfig:
    """server.properties, overlaid with what was altered for all brokers, then for this one.

    `current` may be read from any thread; changes come one at a time.

    Ports: kafka.server.DynamicBrokerConfig
    """

    def __init__(self, static: KafkaConfig) -> None:
        # constant after construction
        self._static = static
        self._dynamic_names = dynamic_property_names()
        self._lock = threading.Lock()
        # guarded by self._lock
        self._defaults: dict[str, str] = {}
        self._overrides: dict[str, str] = {}
        self._reconfigurables: list[Reconfigurable] = []
        self._validators: list[ValidateChange] = []
        # replaced as a whole
        self.current = static

    def add_reconfigurable(
        self, reconfigurable: Reconfigurable, *, validate: ValidateChange | None = None
    ) -> None:
        """`reconfigurable` is told of every later change, with the settings then in force;
        `validate` may object to a change that somebody asks for."""
        with self._lock:
            self._reconfigurables.append(reconfigurable)
            if validate is not None:
                self._validators.append(validate)

    def update_default_config(self, properties: Mapping[str, str]) -> None:
        with self._lock:
            self._defaults = dict(properties)
            self._apply_locked()

    def update_broker_config(self, properties: Mapping[str, str]) -> None:
        with self._lock:
            self._overrides = dict(properties)
            self._apply_locked()

    def _apply_locked(self) -> None:
        merged = {**self._static.properties, **self._defaults, **self._overrides}
        try:
            self.current = KafkaConfig(merged)
        except InvalidConfigurationError as e:
            # What is stored was valid when it was altered; keep running on what we have.
            log.error("The stored broker configuration cannot be used: %s", e)
            return
        for reconfigurable in self._reconfigurables:
            reconfigurable(self.current)

    def validate(
        self,
        properties: Mapping[str, str],
        *,
        per_broker: bool,
        stored: Mapping[str, str] | None = None,
    ) -> None:
        """Raises InvalidRequestError for a setting that is unknown, not dynamic, or has a value
        that it cannot have. Unknown ones that are `stored` already, by Apache Kafka, may stay."""
        unknown = [
            name
            for name, value in properties.items()
            if name not in self._dynamic_names and (stored or {}).get(name) != value
        ]
        if unknown:
            known = {name for key in KafkaConfig.broker_keys() for name in key.property_names}
            reason = (
                "it can only be set in server.properties"
                if unknown[0] in known
                else "there is no such broker configuration"
            )
            raise InvalidRequestError(f"Cannot alter {unknown[0]}: {reason}")
        with self._lock:
            defaults, overrides = self._defaults, self._overrides
            validators = tuple(self._validators)
        static = self._static.properties
        try:
            if per_broker:
                wanted = KafkaConfig({**static, **defaults, **properties})
            else:
                KafkaConfig({**static, **properties})
                # A value that this broker does not use changes nothing here.
                wanted = KafkaConfig({**static, **properties, **overrides})
            for validate in validators:
                validate(self.current, wanted)
        except InvalidConfigurationError as e:
            # Of topics it is INVALID_CONFIG.
            raise InvalidRequestError(str(e)) from e

    def sources(self, name: str) -> list[ConfigValue]:
        """Every place that sets this property, the strongest first; defaults are not among them."""
        with self._lock:
            layers = (
                (ConfigSource.DYNAMIC_BROKER_CONFIG, self._overrides),
                (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self._defaults),
            )
            values = [
                ConfigValue(name, layer[name], source) for source, layer in layers if name in layer
            ]
        if name in self._static.properties:
            values.append(
                ConfigValue(name, self._static.properties[name], ConfigSource.STATIC_BROKER_CONFIG)
            )
        return values

    def is_dynamic(self, name: str) -> bool:
        return name in self._dynamic_names


def dynamic_property_names() -> frozenset[str]:
    """Settings declared dynamic, and the defaults of topics' settings, each under its first name:
    what log.retention.hours says can be changed as log.retention.ms."""
    topic_defaults = {key.synonyms[0].name for key in config_keys(LogConfig) if key.synonyms}
    declared = {
        name
        for broker_key in KafkaConfig.broker_keys()
        if broker_key.key.dynamic
        for name in broker_key.property_names
    }
    return frozenset((topic_defaults - _STATIC_TOPIC_DEFAULTS) | declared)
