"""The options of a data source that are settings of Kafka's clients: `kafka.` in front of each."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.client_config import CommonClientConfig, parse_client_config
from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.clients.producer.producer_config import ProducerConfig
from kafkapy.common.config_def import ConfigKey, ConfigType, InvalidValueError, config_keys
from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.pipeline.pipeline_errors import OptionError

PREFIX = "kafka."
BOOTSTRAP_SERVERS = "bootstrap.servers"

_BINARY = "keys and values are binary columns: convert them in the query"
_REFUSED_BY_SOURCE = {
    "auto.offset.reset": "set startingOffsets instead: the source keeps its offsets itself",
    "key.deserializer": _BINARY,
    "value.deserializer": _BINARY,
    "enable.auto.commit": "set commitOffsetsToGroup instead: the source keeps its offsets itself",
    "interceptor.classes": "not supported: interceptors could change what is read",
}
_REFUSED_BY_SINK = {"key.serializer": _BINARY, "value.serializer": _BINARY}

_CONFIGS: tuple[type[CommonClientConfig], ...] = (AdminClientConfig, ProducerConfig, ConsumerConfig)
_KNOWN = {key.name: key for cls in _CONFIGS for key in config_keys(cls)}
# What Kafka hides. Some names do not sound like it: PEM texts, with a private key, are among them.
SECRET_SETTINGS = frozenset(n for n, key in _KNOWN.items() if key.type is ConfigType.PASSWORD)

ConfigT = TypeVar("ConfigT", bound=CommonClientConfig)


@dataclass(frozen=True, slots=True)
class KafkaClientOptions:
    """Settings of Kafka's clients as a data source was given them. Immutable and picklable.

    A setting that only other clients have is left out of a client's own, so that one set of options
    serves a source and a sink.
    """

    properties: Mapping[str, str] = field(repr=False)  # passwords are among them

    @staticmethod
    def for_source(options: Mapping[str, str]) -> KafkaClientOptions:
        """OptionError for what is missing, unknown, wrong, or what the source does itself."""
        return KafkaClientOptions(_properties(options, _REFUSED_BY_SOURCE))

    @staticmethod
    def for_sink(options: Mapping[str, str]) -> KafkaClientOptions:
        """OptionError for what is missing, unknown, wrong, or what the sink does itself."""
        return KafkaClientOptions(_properties(options, _REFUSED_BY_SINK))

    def properties_for(self, cls: type[CommonClientConfig]) -> dict[str, str]:
        """Those that this kind of client has, for its `properties` argument."""
        known = {key.name for key in config_keys(cls)}
        return {name: value for name, value in self.properties.items() if name in known}

    def config(self, cls: type[ConfigT], **defaults: Any) -> ConfigT:
        """The settings of one kind of client; `defaults`, in snake_case, where none is given."""
        given = self.properties_for(cls)
        names = {key.field_name: key.name for key in config_keys(cls)}
        missing = {field: value for field, value in defaults.items() if names[field] not in given}
        try:
            return parse_client_config(cls, given, missing)
        except InvalidConfigurationError as error:
            raise option_error(error) from error


def option_error(error: InvalidConfigurationError) -> OptionError:
    """What a client says of its settings, of the option that it was."""
    if isinstance(error, InvalidValueError):
        return OptionError(f"{PREFIX}{error.name}", error.reason)
    return OptionError(f"{PREFIX}*", str(error))


def _properties(options: Mapping[str, str], refused: Mapping[str, str]) -> dict[str, str]:
    properties: dict[str, str] = {}
    for option, value in options.items():
        # Spark's options do not tell upper from lower case; Kafka's settings are all lower.
        lowered = option.lower()
        if not lowered.startswith(PREFIX):
            continue
        name = lowered.removeprefix(PREFIX)
        if name in refused:
            raise OptionError(lowered, refused[name])
        key = _KNOWN.get(name)
        if key is None:
            near = difflib.get_close_matches(name, _KNOWN, n=1)
            hint = f"; is {PREFIX}{near[0]} meant?" if near else ""
            raise OptionError(lowered, f"Kafka's clients have no setting {name}{hint}")
        _check(lowered, key, value)
        properties[name] = value
    if BOOTSTRAP_SERVERS not in properties:
        raise OptionError(
            f"{PREFIX}{BOOTSTRAP_SERVERS}", "required: brokers to ask first, as host:port,host:port"
        )
    return properties


def _check(option: str, key: ConfigKey, value: str) -> None:
    if key.type is ConfigType.CLASS:
        raise OptionError(option, "a Python object, which an option cannot be")
    try:
        key.parse(value)
    except InvalidConfigurationError as error:
        raise OptionError(option, str(error)) from error
