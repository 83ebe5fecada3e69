"""bin/kafka-configs: show and change settings that are kept in the cluster."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.tools.admin_connection import connect_admin
from kafkapy.tools.client_arguments import (
    add_bootstrap_server,
    add_command_config,
    load_property_file,
)
from kafkapy.tools.client_configs import ClientConfigs
from kafkapy.tools.config_entities import QUOTA_TYPES, add_entity_arguments, entities_meant
from kafkapy.tools.option_rules import OptionRules
from kafkapy.tools.resource_configs import ResourceConfigs

_CHANGES = ("--add-config", "--add-config-file", "--delete-config")
# A comma outside of brackets.
_SEPARATOR = re.compile(r",(?=[^\]]*(?:\[|$))")


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-configs",
        "Show or change settings of topics, brokers, users, clients and addresses.",
    )
    add_bootstrap_server(command)
    add_command_config(command)
    command.add_argument("--describe", action="store_true", help="show settings")
    command.add_argument(
        "--all",
        action="store_true",
        help="show also settings that were not set for the topic or broker itself",
    )
    command.add_argument("--alter", action="store_true", help="change settings")
    command.add_argument(
        "--add-config",
        metavar="NAME=VALUE,…",
        help="the settings to set; a value with commas goes in brackets: name=[a,b]. Of users and"
        " clients: producer_byte_rate, consumer_byte_rate, request_percentage,"
        " controller_mutation_rate; of addresses: connection_creation_rate; of users also"
        " SCRAM-SHA-256=[iterations=8192,password=secret] and SCRAM-SHA-512",
    )
    command.add_argument(
        "--add-config-file", metavar="FILE", help="a property file of settings to set"
    )
    command.add_argument(
        "--delete-config", metavar="NAME,…", help="the settings to take away again"
    )
    add_entity_arguments(command)
    command.add_argument(
        "--force", action="store_true", help="has no effect: there are no questions"
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    rules = OptionRules(command, parsed)
    rules.exactly_one(("--describe", "--alter"))
    rules.refused("--describe", *_CHANGES)
    rules.refused("--add-config", "--add-config-file")
    entities = entities_meant(command, parsed)
    of_clients = entities[0].entity_type in QUOTA_TYPES
    if parsed.alter and not rules.any_given(_CHANGES):
        command.error(f"--alter needs one of {', '.join(_CHANGES)}")
    added, deleted = _added(parsed), _deleted(parsed)
    with connect_admin(parsed) as admin:
        if of_clients and parsed.describe:
            ClientConfigs(admin).describe(entities)
        elif of_clients:
            ClientConfigs(admin).alter(entities, added, deleted)
        elif parsed.describe:
            ResourceConfigs(admin).describe(entities[0], describe_all=parsed.all)
        else:
            ResourceConfigs(admin).alter(entities[0], added, deleted)
    if parsed.alter:
        print(entities[0].completed)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _added(parsed: argparse.Namespace) -> dict[str, str]:
    if parsed.add_config is None:
        return load_property_file(parsed.add_config_file)
    added = {}
    for word in _SEPARATOR.split(parsed.add_config.rstrip(",")):
        name, separator, value = word.partition("=")
        if not separator or not name.strip():
            fail(f"--add-config {word}: expected name=value")
        added[name.strip()] = value.strip().removeprefix("[").removesuffix("]")
    return added


def _deleted(parsed: argparse.Namespace) -> list[str]:
    if parsed.delete_config is None:
        return []
    names = [word.strip() for word in parsed.delete_config.split(",") if word.strip()]
    if not names:
        fail("--delete-config names no setting")
    return names


if __name__ == "__main__":
    sys.exit(main())
