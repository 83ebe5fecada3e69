"""bin/kafka-consumer-groups: list, describe and delete groups, and change their offsets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kafkapy.clients.admin import AdminClient, ConsumerGroupState, GroupType
from kafkapy.common.command_line import CommandParser, run_command
from kafkapy.common.errors import KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.tools.admin_connection import connect_admin
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config
from kafkapy.tools.consumer_group_report import ConsumerGroupReport
from kafkapy.tools.offset_reset import RESET_FORMS, OffsetReset, partitions_named
from kafkapy.tools.option_rules import OptionRules

_ACTIONS = ("--list", "--describe", "--delete", "--reset-offsets", "--delete-offsets")
_VIEWS = ("--offsets", "--members", "--state")
_DEFAULT_TIMEOUT_MS = 5000
_STATES = [state for state in ConsumerGroupState if state is not ConsumerGroupState.UNKNOWN]
_TYPES = [GroupType.CONSUMER, GroupType.CLASSIC]


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-consumer-groups",
        "List, describe or delete consumer groups, reset or delete their offsets.",
    )
    add_bootstrap_server(command)
    add_command_config(command)
    for option, text in (
        ("--list", "show the names of all groups"),
        ("--describe", "show offsets and lag, members or state of groups"),
        ("--delete", "delete groups that have no members, with their offsets"),
        ("--reset-offsets", "give a group without members other offsets (see --execute)"),
        ("--delete-offsets", "forget the offsets of a group in topics"),
        ("--all-groups", "all groups"),
        ("--all-topics", "reset offsets in all topics in which the group has any"),
        ("--offsets", "describe offsets and lag, partition by partition (this is the default)"),
        ("--members", "describe the members"),
        ("--verbose", "describe also which partitions each member has"),
        ("--dry-run", "only show what --reset-offsets would do (this is the default)"),
        ("--execute", "do what --reset-offsets shows"),
        ("--export", "show new offsets as CSV, as --from-file reads it"),
        ("--to-earliest", "reset to the first offset"),
        ("--to-latest", "reset to the end"),
        ("--to-current", "reset to the committed offset, or to the end where there is none"),
    ):
        command.add_argument(option, action="store_true", help=text)
    command.add_argument(
        "--group",
        metavar="GROUP",
        action="append",
        default=[],
        help="the group (may be repeated, except with --delete-offsets)",
    )
    command.add_argument(
        "--topic",
        metavar="TOPIC",
        action="append",
        default=[],
        help="a topic in which offsets are reset or deleted, or some of its partitions, as"
        " topic:0,1 (may be repeated)",
    )
    command.add_argument(
        "--state",
        metavar="STATES",
        nargs="?",
        const="",
        help="describe or list the states of groups; list only groups in these states, as"
        " stable,empty",
    )
    command.add_argument(
        "--type",
        metavar="TYPES",
        nargs="?",
        const="",
        help="list the types of groups; list only groups of these types, as classic,consumer",
    )
    command.add_argument(
        "--timeout",
        metavar="MS",
        type=int,
        default=_DEFAULT_TIMEOUT_MS,
        help="how long to wait for the brokers' answers (default %(default)s)",
    )
    command.add_argument("--to-offset", metavar="OFFSET", type=int, help="reset to this offset")
    command.add_argument(
        "--shift-by", metavar="N", type=int, help="reset by so many from the committed offset"
    )
    command.add_argument(
        "--to-datetime",
        metavar="TIME",
        help="reset to the first record at or after a time, as 2024-05-01T12:00:00.000; UTC"
        " unless it ends in an offset, as +02:00",
    )
    command.add_argument(
        "--by-duration", metavar="PERIOD", help="reset to so long ago, as P2DT3H4M5S"
    )
    command.add_argument(
        "--from-file",
        metavar="FILE",
        help="reset to the offsets of a CSV file: topic,partition,offset for one group,"
        " group,topic,partition,offset for several",
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    action = _check(command, parsed)
    with connect_admin(parsed) as admin:
        match action:
            case "--list":
                _list(ConsumerGroupReport(admin, parsed.timeout), parsed)
                return 0
            case "--describe":
                done = _describe(ConsumerGroupReport(admin, parsed.timeout), admin, parsed)
            case "--delete":
                done = _delete(admin, parsed)
            case "--delete-offsets":
                done = _delete_offsets(admin, parsed)
            case _:
                done = OffsetReset(admin, parsed).run(_groups(admin, parsed))
    return 0 if done else 1


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _check(command: CommandParser, parsed: argparse.Namespace) -> str:
    rules = OptionRules(command, parsed)
    action = rules.exactly_one(_ACTIONS)
    for option, actions in {
        "--type": ("--list",),
        "--state": ("--list", "--describe"),
        "--offsets": ("--describe",),
        "--members": ("--describe",),
        "--verbose": ("--describe",),
        **dict.fromkeys(
            (*RESET_FORMS, "--all-topics", "--dry-run", "--execute", "--export"),
            ("--reset-offsets",),
        ),
        "--topic": ("--reset-offsets", "--delete-offsets"),
        "--group": tuple(action for action in _ACTIONS if action != "--list"),
    }.items():
        rules.only_with(option, actions)
    if parsed.timeout < 0:
        command.error(f"--timeout {parsed.timeout}: it must not be negative")
    rules.refused("--group", "--all-groups")
    match action:
        case "--describe":
            rules.exactly_one(("--group", "--all-groups"))
            if len(rules.any_given(_VIEWS)) > 1:
                command.error(f"--describe takes at most one of {', '.join(_VIEWS)}")
            if parsed.state:
                command.error("--state takes no value with --describe")
        case "--delete":
            rules.exactly_one(("--group", "--all-groups"))
        case "--delete-offsets":
            rules.required("--group", "--topic")
            if len(parsed.group) > 1:
                command.error("--delete-offsets takes one --group")
        case "--reset-offsets":
            rules.exactly_one(("--group", "--all-groups"))
            rules.refused("--execute", "--dry-run")
            rules.exactly_one(RESET_FORMS)
            rules.refused("--all-topics", "--topic")
            if parsed.from_file is None:
                rules.exactly_one(("--all-topics", "--topic"))
    return action


def _groups(admin: AdminClient, parsed: argparse.Namespace) -> list[str]:
    if not parsed.all_groups:
        return sorted(set(parsed.group))
    return [group.group_id for group in admin.list_consumer_groups(timeout_ms=parsed.timeout)]


def _list(report: ConsumerGroupReport, parsed: argparse.Namespace) -> None:
    states, types = [], []
    for name in _names(parsed.state):
        state = ConsumerGroupState(name)
        if state not in _STATES:
            parser().error(
                f"There is no state {name}; there are {', '.join(s.value for s in _STATES)}"
            )
        states.append(state)
    for name in _names(parsed.type):
        group_type = GroupType(name)
        if group_type not in _TYPES:
            parser().error(
                f"There is no type {name}; there are {', '.join(t.value for t in _TYPES)}"
            )
        types.append(group_type)
    report.print_list(
        states, types, shows_states=parsed.state is not None, shows_types=parsed.type is not None
    )


def _names(words: str | None) -> list[str]:
    return [word.strip() for word in words.split(",")] if words else []


def _describe(report: ConsumerGroupReport, admin: AdminClient, parsed: argparse.Namespace) -> bool:
    groups = _groups(admin, parsed)
    if parsed.members:
        return report.print_members(groups, verbose=parsed.verbose)
    if parsed.state is not None:
        return report.print_states(groups)
    return report.print_offsets(groups)


def _delete(admin: AdminClient, parsed: argparse.Namespace) -> bool:
    deleted = admin.delete_consumer_groups(
        _groups(admin, parsed), timeout_ms=parsed.timeout, raise_errors=False
    )
    for group, error in deleted.errors.items():
        print(f"Error: Group '{group}' could not be deleted: {error}", file=sys.stderr)
    names = ", ".join(f"'{group}'" for group in deleted.successes)
    if not deleted.errors:
        print(f"Deletion of requested consumer groups ({names}) was successful.")
    elif names:
        print(f"These consumer groups were deleted successfully: {names}")
    return not deleted.errors


def _delete_offsets(admin: AdminClient, parsed: argparse.Namespace) -> bool:
    group = parsed.group[0]
    statuses: dict[tuple[str, object], str] = {}
    partitions: list[TopicPartition] = []
    errors: list[KafkaError] = []
    for topic in parsed.topic:
        try:
            partitions += partitions_named(admin, [topic], parsed.timeout)
        except KafkaError as e:
            statuses[topic, "Not Provided"] = f"Error: {e}"
            errors.append(e)
    if partitions:
        deleted = admin.delete_consumer_group_offsets(
            group, partitions, timeout_ms=parsed.timeout, raise_errors=False
        )
        for partition in partitions:
            error = deleted.errors.get(partition)
            statuses[partition.topic, partition.partition] = (
                "Successful" if error is None else f"Error: {error}"
            )
        errors += deleted.errors.values()
    if not errors:
        print(
            f"Request succeed for deleting offsets with topic {', '.join(parsed.topic)}"
            f" group {group}"
        )
    print(f"\n{'TOPIC':<30} {'PARTITION':<15} {'STATUS':<15}")
    for (topic, partition_id), status in statuses.items():
        print(f"{topic:<30} {partition_id:<15} {status:<15}")
    if errors:
        print(f"Error: offsets of group '{group}' remain: {errors[0]}", file=sys.stderr)
    return not errors


if __name__ == "__main__":
    sys.exit(main())
