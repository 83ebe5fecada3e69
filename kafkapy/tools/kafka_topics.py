"""bin/kafka-topics: create, delete, describe, list and grow topics."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from kafkapy.clients.admin import AdminClient, NewPartitions, NewTopic
from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.common.errors import TopicExistsError
from kafkapy.common.topic import has_collision_chars
from kafkapy.common.types import uuid_from_base64
from kafkapy.tools.admin_connection import connect_admin, existing_topics
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config
from kafkapy.tools.option_rules import OptionRules
from kafkapy.tools.topic_filter import TopicFilter
from kafkapy.tools.topic_report import TopicReport

_ACTIONS = ("--list", "--describe", "--create", "--alter", "--delete")
_REPORTS = {
    "--under-replicated-partitions": "only partitions with fewer replicas in sync than assigned",
    "--unavailable-partitions": "only partitions that have no leader",
    "--under-min-isr-partitions": "only partitions with fewer replicas in sync than the minimum",
    "--at-min-isr-partitions": "only partitions with just the minimum of replicas in sync",
}
_MAX_REPLICATION_FACTOR = 2**15 - 1


def parser() -> CommandParser:
    command = CommandParser("kafka-topics", "Create, delete, describe, list or grow topics.")
    add_bootstrap_server(command)
    add_command_config(command)
    for action, text in (
        ("--list", "show the names of all topics"),
        ("--describe", "show partitions, replicas and settings of topics"),
        ("--create", "create a topic"),
        ("--alter", "give a topic more partitions (its settings: see kafka-configs)"),
        ("--delete", "delete topics"),
    ):
        command.add_argument(action, action="store_true", help=text)
    command.add_argument(
        "--topic",
        metavar="TOPIC",
        help="the topic; except with --create also a regular expression, or several, separated by"
        " commas",
    )
    command.add_argument("--topic-id", metavar="ID", help="describe the topic of this id")
    command.add_argument(
        "--partitions",
        metavar="N",
        type=int,
        help="how many partitions there are to be (default: what the broker is set to). The"
        " partition of a key changes with their number",
    )
    command.add_argument(
        "--replication-factor",
        metavar="N",
        type=int,
        help="how many replicas each partition is to have (default: what the broker is set to)",
    )
    command.add_argument(
        "--replica-assignment",
        metavar="ID:ID,…",
        help="the brokers of each partition by hand: ids joined by colons, partitions by commas",
    )
    command.add_argument(
        "--config",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a setting of the new topic (may be repeated)",
    )
    command.add_argument(
        "--delete-config",
        metavar="NAME",
        action="append",
        default=[],
        help="has no effect, as with Kafka: kafka-configs removes settings",
    )
    command.add_argument(
        "--if-exists", action="store_true", help="do nothing if there is no such topic"
    )
    command.add_argument(
        "--if-not-exists", action="store_true", help="do nothing if the topic is there already"
    )
    command.add_argument(
        "--exclude-internal", action="store_true", help="leave out Kafka's own topics"
    )
    command.add_argument(
        "--topics-with-overrides",
        action="store_true",
        help="describe only topics with settings of their own, and not their partitions",
    )
    for report, text in _REPORTS.items():
        command.add_argument(report, action="store_true", help=f"describe {text}")
    command.add_argument(
        "--partition-size-limit-per-response",
        metavar="N",
        type=int,
        help="has no effect: brokers tell of all partitions at once",
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    action = _check(command, parsed)
    with connect_admin(parsed) as admin:
        match action:
            case "--create":
                _create(admin, parsed)
            case "--list":
                print("\n".join(_matching(existing_topics(admin), parsed)))
            case "--describe":
                _describe(admin, parsed)
            case "--alter":
                _alter(admin, parsed)
            case "--delete":
                admin.delete_topics(_topics(admin, parsed))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _check(command: CommandParser, parsed: argparse.Namespace) -> str:
    rules = OptionRules(command, parsed)
    action = rules.exactly_one(_ACTIONS)
    if action not in ("--list", "--describe"):
        rules.required("--topic")
    if action == "--alter":
        if parsed.config:
            command.error("--config cannot be used with --alter: use kafka-configs")
        rules.required("--partitions")
    if action == "--create":
        rules.refused("--replica-assignment", "--partitions", "--replication-factor")
    rules.refused("--topics-with-overrides", *_REPORTS)
    for option, actions in {
        "--config": ("--create",),
        "--delete-config": ("--alter",),
        "--partitions": ("--create", "--alter"),
        "--replication-factor": ("--create",),
        "--replica-assignment": ("--create", "--alter"),
        "--if-exists": ("--alter", "--delete", "--describe"),
        "--if-not-exists": ("--create",),
        "--exclude-internal": ("--list", "--describe"),
        **dict.fromkeys(("--topics-with-overrides", *_REPORTS), ("--describe",)),
    }.items():
        rules.only_with(option, actions)
    return action


def _create(admin: AdminClient, parsed: argparse.Namespace) -> None:
    if parsed.partitions is not None and parsed.partitions < 1:
        fail(f"--partitions {parsed.partitions}: there must be at least 1")
    factor = parsed.replication_factor
    if factor is not None and not 1 <= factor <= _MAX_REPLICATION_FACTOR:
        fail(f"--replication-factor {factor}: it must be from 1 to {_MAX_REPLICATION_FACTOR}")
    if has_collision_chars(parsed.topic):
        print(
            f"{parsed.topic}: in names of metrics . and _ are the same; it is best to use only one"
            " of them in topics",
            file=sys.stderr,
        )
    counts = {"num_partitions": parsed.partitions, "replication_factor": factor}
    topic = NewTopic(
        parsed.topic,
        **{name: count for name, count in counts.items() if count is not None},
        replica_assignments=_assignment(parsed),
        topic_configs=_configs(parsed.config),
    )
    try:
        admin.create_topics([topic], retry_on_quota_violation=False)
    except TopicExistsError:
        if not parsed.if_not_exists:
            raise
    else:
        print(f"Created topic {parsed.topic}.")


def _configs(words: Iterable[str]) -> dict[str, str]:
    configs = {}
    for word in words:
        name, _, value = word.partition("=")
        if not name.strip() or not value.strip():
            fail(f"--config {word}: expected name=value")
        configs[name.strip()] = value.strip()
    return configs


def _assignment(parsed: argparse.Namespace) -> dict[int, list[int]] | None:
    if parsed.replica_assignment is None:
        return None
    try:
        replicas = [
            [int(broker) for broker in word.strip().split(":")]
            for word in parsed.replica_assignment.split(",")
        ]
    except ValueError:
        fail(f"--replica-assignment {parsed.replica_assignment}: expected broker ids as 0:1,1:0")
    for partition, brokers in enumerate(replicas):
        if len(set(brokers)) < len(brokers):
            fail(f"--replica-assignment: partition {partition} has a broker twice: {brokers}")
        if len(brokers) != len(replicas[0]):
            fail(
                f"--replica-assignment: partition {partition} has {len(brokers)} replicas, but the"
                f" first has {len(replicas[0])}"
            )
    return dict(enumerate(replicas))


def _alter(admin: AdminClient, parsed: argparse.Namespace) -> None:
    topics = _topics(admin, parsed)
    assignment = _assignment(parsed)
    described = admin.describe_topics(topics)
    wanted = {}
    for topic in topics:
        new_assignments = None
        if assignment is not None:
            # It is given for the partitions that are there too.
            existing = len(described[topic].partitions)
            new_assignments = list(assignment.values())[existing:]
        wanted[topic] = NewPartitions(parsed.partitions, new_assignments)
    admin.create_partitions(wanted, retry_on_quota_violation=False)


def _describe(admin: AdminClient, parsed: argparse.Namespace) -> None:
    report = TopicReport(
        admin,
        only_overridden=parsed.topics_with_overrides,
        only_under_replicated=parsed.under_replicated_partitions,
        only_unavailable=parsed.unavailable_partitions,
        only_under_min_isr=parsed.under_min_isr_partitions,
        only_at_min_isr=parsed.at_min_isr_partitions,
    )
    if parsed.topic_id is not None:
        report.print(_topic_of_id(admin, parsed))
    else:
        report.print(_topics(admin, parsed))


def _topic_of_id(admin: AdminClient, parsed: argparse.Namespace) -> list[UUID]:
    try:
        topic_id = uuid_from_base64(parsed.topic_id)
    except ValueError:
        fail(f"--topic-id {parsed.topic_id}: a topic id is 16 bytes in 22 base64 characters")
    if topic_id in existing_topics(admin).values():
        return [topic_id]
    if parsed.if_exists:
        return []
    fail(f"There is no topic of id {parsed.topic_id}")


def _topics(admin: AdminClient, parsed: argparse.Namespace) -> list[str]:
    """Those meant by --topic; none is an error unless --if-exists."""
    topics = _matching(existing_topics(admin), parsed)
    if not topics and parsed.topic is not None and not parsed.if_exists:
        fail(f"There is no topic {parsed.topic}")
    return topics


def _matching(topics: Mapping[str, UUID], parsed: argparse.Namespace) -> list[str]:
    wanted = TopicFilter(".*" if parsed.topic is None else parsed.topic)
    return [
        topic for topic in topics if wanted.allows(topic, exclude_internal=parsed.exclude_internal)
    ]


if __name__ == "__main__":
    sys.exit(main())
