"""bin/kafka-reassign-partitions: move partitions to other brokers."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.tools.admin_connection import connect_admin
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config
from kafkapy.tools.json_files import (
    objects_of,
    partition_of,
    read_json_object,
    refuse_duplicates,
)
from kafkapy.tools.option_rules import OptionRules
from kafkapy.tools.partition_moves import ANY_LOG_DIR, Assignment, PartitionMoves

_ACTIONS = ("--generate", "--execute", "--verify", "--cancel", "--list")
_NO_THROTTLE = -1


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-reassign-partitions", "Move the replicas of partitions between brokers."
    )
    add_bootstrap_server(command)
    add_command_config(command)
    for action, text in (
        ("--generate", "propose where the partitions of topics could go; nothing is moved"),
        ("--execute", "start the moves of --reassignment-json-file"),
        ("--verify", "show how far the moves are; when all are done, remove throttles"),
        ("--cancel", "call the moves off"),
        ("--list", "show the moves under way"),
        ("--additional", "execute although other moves are under way"),
        ("--preserve-throttles", "leave throttles as they are"),
        ("--disable-rack-aware", "propose without regard to racks"),
    ):
        command.add_argument(action, action="store_true", help=text)
    command.add_argument(
        "--reassignment-json-file",
        metavar="FILE",
        help='where replicas are to be: {"version": 1, "partitions":'
        ' [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}',
    )
    command.add_argument(
        "--topics-to-move-json-file",
        metavar="FILE",
        help='the topics for --generate: {"version": 1, "topics": [{"topic": "t"}]}',
    )
    command.add_argument("--broker-list", metavar="ID,…", help="the brokers for --generate")
    command.add_argument(
        "--throttle",
        metavar="BYTES",
        type=int,
        help="how much may move in a second (default: no limit)",
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    action = _check(OptionRules(command, parsed))
    target = _target(parsed.reassignment_json_file)
    topics = _topics(parsed.topics_to_move_json_file)
    brokers = _brokers(parsed.broker_list)
    with connect_admin(parsed) as admin:
        moves = PartitionMoves(admin)
        match action:
            case "--list":
                moves.list()
            case "--generate":
                moves.generate(topics, brokers, by_racks=not parsed.disable_rack_aware)
            case "--execute":
                throttle = _NO_THROTTLE if parsed.throttle is None else parsed.throttle
                moves.execute(target, additional=parsed.additional, throttle=throttle)
            case "--verify":
                moves.verify(target, preserve_throttles=parsed.preserve_throttles)
            case "--cancel":
                moves.cancel(target, preserve_throttles=parsed.preserve_throttles)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _check(rules: OptionRules) -> str:
    action = rules.exactly_one(_ACTIONS)
    if action == "--generate":
        rules.required("--topics-to-move-json-file", "--broker-list")
    elif action != "--list":
        rules.required("--reassignment-json-file")
    for option, actions in {
        "--reassignment-json-file": ("--execute", "--verify", "--cancel"),
        "--topics-to-move-json-file": ("--generate",),
        "--broker-list": ("--generate",),
        "--disable-rack-aware": ("--generate",),
        "--throttle": ("--execute",),
        "--additional": ("--execute",),
        "--preserve-throttles": ("--verify", "--cancel"),
    }.items():
        rules.only_with(option, actions)
    return action


def _target(path: str | None) -> Assignment:
    if path is None:
        return {}
    entries = objects_of(read_json_object(path), "partitions", path)
    partitions = [partition_of(entry, path) for entry in entries]
    refuse_duplicates(partitions, path)
    target: Assignment = {}
    for partition, entry in zip(partitions, entries, strict=True):
        replicas = entry.get("replicas")
        if not isinstance(replicas, list) or not all(type(id_) is int for id_ in replicas):
            fail(f'{path}: {partition} has no "replicas", a list of broker ids')
        if not replicas:
            fail(f"{path}: {partition} would have no replicas")
        if len(set(replicas)) < len(replicas):
            fail(f"{path}: {partition} has a broker twice: {replicas}")
        log_dirs = entry.get("log_dirs", [ANY_LOG_DIR] * len(replicas))
        if log_dirs != [ANY_LOG_DIR] * len(replicas):
            fail(f'{path}: {partition}: log_dirs can only be "{ANY_LOG_DIR}", once per replica')
        target[partition] = replicas
    if not target:
        fail(f"{path} has no partitions")
    return target


def _topics(path: str | None) -> list[str]:
    if path is None:
        return []
    topics = [entry.get("topic") for entry in objects_of(read_json_object(path), "topics", path)]
    names = [topic for topic in topics if isinstance(topic, str)]
    if len(names) < len(topics) or len(set(names)) < len(names) or not names:
        fail(f'{path}: expected different topics, as {{"topics": [{{"topic": "t"}}]}}')
    return names


def _brokers(words: str | None) -> list[int]:
    if words is None:
        return []
    try:
        brokers = [int(word) for word in words.split(",")]
    except ValueError:
        fail(f"--broker-list {words}: expected broker ids separated by commas")
    if len(set(brokers)) < len(brokers):
        fail(f"--broker-list {words} has a broker twice")
    return brokers


if __name__ == "__main__":
    sys.exit(main())
