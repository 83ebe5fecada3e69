"""Settings declared once, as fields of frozen dataclasses.

A field made by `config()` carries its property name, default, validator and description; from
that come parsing (`parse`), the configuration reference in docs/ and DescribeConfigs. A setting
that exists per topic and per broker (`retention.ms` and `log.retention.hours`) is one field: the
topic's name first, the broker's names as synonyms, the first one set winning.

Ports: org.apache.kafka.common.config.ConfigDef
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from kafkapy.common.errors import InvalidConfigurationError
from kafkapy.common.password import Password

T = TypeVar("T")
Validator = Callable[[Any], str | None]  # the complaint, or None when the value is good
_METADATA_KEY = "kafkapy.config"


class ConfigType(Enum):
    """The wire codes are those of DescribeConfigs v3+.

    Ports: org.apache.kafka.common.config.ConfigDef.Type
    """

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Synonym:
    """Another property that sets the same field, in a unit `scale` times as large."""

    name: str
    scale: int = 1


class InvalidValueError(InvalidConfigurationError):
    """A setting has a value that it cannot have, which is shown if there is one to show."""

    def __init__(self, name: str, value: str, reason: str) -> None:
        shown = f" {value}" if value else ""
        super().__init__(f"Invalid value{shown} for configuration {name}: {reason}")
        self.name = name
        self.reason = f"Invalid value{shown}: {reason}"
        self._given = (name, value, reason)

    def __reduce__(self) -> tuple[type[InvalidValueError], tuple[str, str, str]]:
        # An exception is pickled as its class and its message, unless told otherwise.
        return InvalidValueError, self._given


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """Everything declared about one setting."""

    name: str
    type: ConfigType
    default: Any
    doc: str
    validator: Validator | None
    importance: Importance
    dynamic: bool
    synonyms: tuple[Synonym, ...]
    optional: bool
    field_name: str

    def parse(self, text: str, *, name: str | None = None) -> Any:
        """The typed value of `text`; raises InvalidValueError naming the property."""
        name = name or self.name
        value = self._convert(text.strip(), name)
        self.validate(value, name=name)
        return value

    def validate(self, value: Any, *, name: str | None = None) -> None:
        if value is None and self.optional:
            return
        complaint = self.validator(value) if self.validator is not None else None
        if complaint is not None:
            raise InvalidValueError(name or self.name, self.format(value), complaint)

    def format(self, value: Any) -> str:
        """The property-file form of a value."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(str(item) for item in value)
        return str(value)

    def names(self, *, use_name: bool = True, use_synonyms: bool = True) -> tuple[Synonym, ...]:
        """The properties that set this field, the strongest first."""
        own = (Synonym(self.name),) if use_name else ()
        return own + self.synonyms if use_synonyms else own

    def _convert(self, text: str, name: str) -> Any:
        if text == "" and self.optional:
            return None
        match self.type:
            case ConfigType.BOOLEAN:
                lowered = text.lower()
                if lowered in ("true", "false"):
                    return lowered == "true"
                expected = "true or false"
            case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
                bits = {ConfigType.SHORT: 15, ConfigType.INT: 31}.get(self.type, 63)
                number = _number(int, text)
                if number is not None and -(1 << bits) <= number < (1 << bits):
                    return number
                expected = f"a whole number of {bits + 1} bits"
            case ConfigType.DOUBLE:
                real = _number(float, text)
                if real is not None:
                    return real
                expected = "a number"
            case ConfigType.LIST:
                return tuple(item.strip() for item in text.split(",") if item.strip())
            case ConfigType.PASSWORD:
                return Password(text)
            case _:
                return text
        raise InvalidValueError(name, repr(text), f"expected {expected}")


def _number(of_type: Callable[[str], T], text: str) -> T | None:
    """Python takes 1_000 for a number; Kafka and whoever else reads the same file do not."""
    try:
        return None if "_" in text else of_type(text)
    except ValueError:
        return None


def config(
    name: str,
    default: Any,
    validator: Validator | None = None,
    *,
    doc: str,
    type: ConfigType | None = None,
    importance: Importance = Importance.MEDIUM,
    dynamic: bool = False,
    synonyms: tuple[str | Synonym, ...] = (),
) -> Any:
    """A dataclass field that is a setting. `type` is only needed where the annotation is not enough
    (LONG and SHORT rather than INT, CLASS)."""
    declared = {
        "name": name,
        "type": type,
        "default": default,
        "doc": doc,
        "validator": validator,
        "importance": importance,
        "dynamic": dynamic,
        "synonyms": tuple(Synonym(s) if isinstance(s, str) else s for s in synonyms),
    }
    return dataclasses.field(default=default, metadata={_METADATA_KEY: declared})


_KEYS: dict[type, tuple[ConfigKey, ...]] = {}  # derived from class declarations, never changes


def config_keys(cls: type) -> tuple[ConfigKey, ...]:
    """The settings a config dataclass declares, in order."""
    keys = _KEYS.get(cls)
    if keys is None:
        keys = _KEYS[cls] = tuple(_declared_keys(cls))
    return keys


def _declared_keys(cls: type) -> Iterator[ConfigKey]:
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        declared = field.metadata.get(_METADATA_KEY)
        if declared is None:
            continue
        annotated, optional = _type_of(hints[field.name])
        yield ConfigKey(
            **{**declared, "type": declared["type"] or annotated},
            optional=optional,
            field_name=field.name,
        )


def _type_of(annotation: Any) -> tuple[ConfigType, bool]:
    optional = False
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        arguments = [a for a in typing.get_args(annotation) if a is not type(None)]
        optional, annotation = True, arguments[0]
    if typing.get_origin(annotation) is tuple:
        return ConfigType.LIST, optional
    simple = {
        bool: ConfigType.BOOLEAN,
        int: ConfigType.INT,
        float: ConfigType.DOUBLE,
        str: ConfigType.STRING,
        Password: ConfigType.PASSWORD,
    }
    # Anything else is an object that a program hands over, such as a serializer.
    return simple.get(annotation, ConfigType.CLASS), optional


def parse(
    cls: type[T],
    properties: Mapping[str, str],
    *,
    use_name: bool = True,
    use_synonyms: bool = True,
) -> T:
    """An instance of `cls` from property texts; what is not named keeps its default.

    Topic-level overrides are read with `use_synonyms` off (only each setting's first name counts),
    the broker's defaults for topics with `use_name` off (only the broker's names count).
    """
    values: dict[str, Any] = {}
    for key in config_keys(cls):
        for synonym in key.names(use_name=use_name, use_synonyms=use_synonyms):
            if synonym.name in properties:
                value = key._convert(properties[synonym.name].strip(), synonym.name)
                if synonym.scale != 1 and isinstance(value, int) and value >= 0:
                    value *= synonym.scale
                key.validate(value, name=synonym.name)
                values[key.field_name] = value
                break
    return cls(**values)


def at_least(minimum: float) -> Validator:
    return lambda value: None if value >= minimum else f"must be at least {minimum}"


def between(minimum: float, maximum: float) -> Validator:
    return lambda value: (
        None if minimum <= value <= maximum else f"must be between {minimum} and {maximum}"
    )


def one_of(*allowed: str) -> Validator:
    return lambda value: None if value in allowed else f"must be one of {', '.join(allowed)}"


def each_of(*allowed: str, or_none: bool = False) -> Validator:
    """For lists: every item is allowed, and there is at least one unless there may be none."""

    def check(value: tuple[str, ...]) -> str | None:
        is_legal = all(item in allowed for item in value) and (or_none or value)
        return None if is_legal else f"each must be one of {', '.join(allowed)}"

    return check


def not_empty(value: str) -> str | None:
    return None if value else "must not be empty"
