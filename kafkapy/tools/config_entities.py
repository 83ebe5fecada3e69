"""Whose settings kafka-configs shows or changes."""

from __future__ import annotations

import argparse
import socket
from dataclasses import dataclass
from enum import Enum

from kafkapy.common.command_line import CommandParser


class EntityType(Enum):
    """What has settings; the values are those of --entity-type."""

    TOPIC = "topics"
    CLIENT = "clients"
    USER = "users"
    BROKER = "brokers"
    BROKER_LOGGER = "broker-loggers"
    IP = "ips"

    @property
    def singular(self) -> str:
        return self.value[:-1]


QUOTA_TYPES = frozenset({EntityType.USER, EntityType.CLIENT, EntityType.IP})
_WITH_DEFAULTS = QUOTA_TYPES | {EntityType.BROKER}

# In the order in which Kafka looks at them: the first one given is the one it speaks of.
_NAME_FLAGS = {
    "topic": EntityType.TOPIC,
    "client": EntityType.CLIENT,
    "user": EntityType.USER,
    "broker": EntityType.BROKER,
    "broker_logger": EntityType.BROKER_LOGGER,
    "ip": EntityType.IP,
}
_DEFAULT_FLAGS = {
    "client_defaults": EntityType.CLIENT,
    "user_defaults": EntityType.USER,
    "broker_defaults": EntityType.BROKER,
    "ip_defaults": EntityType.IP,
}


@dataclass(frozen=True, slots=True)
class ConfigEntity:
    """One of a type by its name, the default of the type, or (neither) all of the type."""

    entity_type: EntityType
    name: str | None
    is_default: bool = False

    @property
    def is_all(self) -> bool:
        return self.name is None and not self.is_default

    @property
    def completed(self) -> str:
        """What a change of it says in the end."""
        if self.is_default:
            return f"Completed updating default config for {self.entity_type.value} in the cluster."
        return f"Completed updating config for {self.entity_type.singular} {self.name}."


def add_entity_arguments(command: CommandParser) -> None:
    command.add_argument(
        "--entity-type",
        metavar="TYPE",
        action="append",
        default=[],
        help=f"whose settings: {', '.join(kind.value for kind in EntityType)}; users and clients"
        " may both be given, for clients of a user",
    )
    command.add_argument(
        "--entity-name",
        metavar="NAME",
        dest="entity_names",
        action="append",
        default=[],
        help="the name of the topic, client, user or address, or the broker's id",
    )
    command.add_argument(
        "--entity-default",
        dest="entity_names",
        action="append_const",
        const=None,
        help="the defaults of the type",
    )
    for flag, kind in _NAME_FLAGS.items():
        command.add_argument(
            f"--{flag.replace('_', '-')}",
            metavar="ID" if "broker" in flag else "NAME",
            help=f"short for --entity-type {kind.value} --entity-name NAME",
        )
    for flag, kind in _DEFAULT_FLAGS.items():
        command.add_argument(
            f"--{flag.replace('_', '-')}",
            action="store_true",
            help=f"short for --entity-type {kind.value} --entity-default",
        )


def entities_meant(command: CommandParser, parsed: argparse.Namespace) -> list[ConfigEntity]:
    """One, or a user and a client."""
    by_flags = [
        ConfigEntity(kind, getattr(parsed, flag))
        for flag, kind in _NAME_FLAGS.items()
        if getattr(parsed, flag) is not None
    ] + [
        ConfigEntity(kind, None, is_default=True)
        for flag, kind in _DEFAULT_FLAGS.items()
        if getattr(parsed, flag)
    ]
    if by_flags and (parsed.entity_type or parsed.entity_names):
        command.error("--entity-type, -name and -default do not go with options for one type")
    entities = by_flags or _by_type(command, parsed)
    if not entities:
        command.error("Say whose settings: by --entity-type or an option as --topic")
    types = [entity.entity_type for entity in entities]
    if len(set(types)) < len(types):
        command.error(f"{types[0].value} can be given only once")
    if len(types) > 1 and set(types) != {EntityType.USER, EntityType.CLIENT}:
        command.error("Only users and clients may be given together")
    for entity in entities:
        _check(command, entity, is_change=parsed.alter)
    return entities


def _by_type(command: CommandParser, parsed: argparse.Namespace) -> list[ConfigEntity]:
    names: list[str | None] = parsed.entity_names
    if len(names) > len(parsed.entity_type):
        command.error("There are more entity names than types")
    entities = []
    for index, word in enumerate(parsed.entity_type):
        try:
            kind = EntityType(word)
        except ValueError:
            known = ", ".join(kind.value for kind in EntityType)
            command.error(f"There is no entity type {word}; there are {known}")
        if index < len(names):
            entities.append(ConfigEntity(kind, names[index], is_default=names[index] is None))
        else:
            entities.append(ConfigEntity(kind, None))
    return entities


def _check(command: CommandParser, entity: ConfigEntity, *, is_change: bool) -> None:
    kind, name = entity.entity_type, entity.name
    if entity.is_default and kind not in _WITH_DEFAULTS:
        command.error(f"{kind.value} have no defaults")
    if is_change and entity.is_all:
        command.error(f"--alter of {kind.value} needs a name")
    if name is None:
        return
    if kind in (EntityType.BROKER, EntityType.BROKER_LOGGER) and not name.isdigit():
        command.error(f"{name} is no broker id")
    if kind is EntityType.IP:
        try:
            socket.getaddrinfo(name, None)
        except OSError:
            command.error(f"{name} is no address")
