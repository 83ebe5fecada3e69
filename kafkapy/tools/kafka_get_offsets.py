"""bin/kafka-get-offsets: offsets of partitions, the last, the first or those of a time."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from kafkapy.clients.admin import AdminClient, OffsetSpec
from kafkapy.clients.client_arguments import MAX_INT64
from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.common.types import TopicPartition
from kafkapy.tools.admin_connection import connect_admin, existing_topics
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config
from kafkapy.tools.option_rules import OptionRules
from kafkapy.tools.topic_filter import TopicFilter

_TIMES = {
    "latest": OffsetSpec.LATEST,
    "earliest": OffsetSpec.EARLIEST,
    "max-timestamp": OffsetSpec.MAX_TIMESTAMP,
    "earliest-local": OffsetSpec.EARLIEST_LOCAL,
    "latest-tiered": OffsetSpec.LATEST_TIERED,
}
_RULE = re.compile(
    r"(?P<topic>[^:,]*)(?::(?:(?P<partition>[0-9]*)|(?P<first>[0-9]*)-(?P<end>[0-9]*)))?"
)

Filter = Callable[[TopicPartition], bool]


def parser() -> CommandParser:
    command = CommandParser("kafka-get-offsets", "Show offsets of partitions.")
    add_bootstrap_server(command, required=False)
    command.add_argument(
        "--broker-list", metavar="HOST:PORT", help="an old name of --bootstrap-server, which wins"
    )
    add_command_config(command)
    command.add_argument(
        "--topic",
        metavar="TOPIC",
        help="a regular expression for the names of topics (default: all topics)",
    )
    command.add_argument(
        "--partitions",
        metavar="N,…",
        help="only these partitions of the topics (default: all)",
    )
    command.add_argument(
        "--topic-partitions",
        metavar="RULE,…",
        help="topics, by regular expressions, each with its partitions: topic, topic:0, topic:1-3"
        " (without 3), topic:2-, topic:-3 or, of all topics, :0; instead of --topic and"
        " --partitions",
    )
    command.add_argument(
        "--time",
        metavar="TIME",
        default="latest",
        help=f"which offsets: {', '.join(_TIMES)} (-1 to -5 stand for these) or, of the first"
        " record at or after it, a time in ms since 1970 (default latest)",
    )
    command.add_argument(
        "--exclude-internal-topics", action="store_true", help="leave out Kafka's own topics"
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    rules = OptionRules(command, parsed)
    rules.refused("--topic-partitions", "--topic", "--partitions")
    parsed.bootstrap_server = parsed.bootstrap_server or parsed.broker_list
    rules.required("--bootstrap-server")
    spec = _spec(parsed.time)
    is_wanted = _filter(parsed)
    with connect_admin(parsed) as admin:
        partitions = [tp for tp in _all_partitions(admin) if is_wanted(tp)]
        if not partitions:
            fail("No partition is meant by these filters")
        listed = admin.list_offsets(dict.fromkeys(partitions, spec), raise_errors=False)
    for partition in sorted(partitions, key=str):
        if partition in listed.errors:
            print(f"No offset of {partition}: {listed.errors[partition]}", file=sys.stderr)
        elif listed[partition].offset >= 0:
            print(f"{partition.topic}:{partition.partition}:{listed[partition].offset}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _spec(time: str) -> int:
    spec: int | None = _TIMES.get(time)
    if spec is None:
        with suppress(ValueError):
            spec = int(time)
    if spec is None or abs(spec) > MAX_INT64:
        fail(f"--time {time}: expected {', '.join(_TIMES)} or a time in ms")
    return spec


def _all_partitions(admin: AdminClient) -> list[TopicPartition]:
    topics = admin.describe_topics(existing_topics(admin))
    return [
        TopicPartition(topic.name, info.partition)
        for topic in topics.values()
        for info in topic.partitions
    ]


def _filter(parsed: argparse.Namespace) -> Filter:
    exclude_internal: bool = parsed.exclude_internal_topics
    if parsed.topic_partitions is not None:
        rules = [_rule(word, exclude_internal) for word in parsed.topic_partitions.split(",")]
        return lambda partition: any(rule(partition) for rule in rules)
    # An empty expression, of a variable that is not set perhaps, means no topic and not all.
    topics = TopicFilter(".*" if parsed.topic is None else parsed.topic)
    numbers = None
    if parsed.partitions:
        try:
            numbers = {int(number) for number in parsed.partitions.split(",")}
        except ValueError:
            fail(f"--partitions {parsed.partitions}: expected numbers separated by commas")
    return lambda partition: (
        topics.allows(partition.topic, exclude_internal=exclude_internal)
        and (numbers is None or partition.partition in numbers)
    )


def _rule(word: str, exclude_internal: bool) -> Filter:
    match = _RULE.fullmatch(word)
    if match is None:
        fail(f"--topic-partitions {word}: expected topic, topic:0, topic:1-3, topic:2- or topic:-3")
    topics = TopicFilter(match["topic"] or ".*")
    numbers = range(2**31)
    if match["partition"]:
        numbers = range(int(match["partition"]), int(match["partition"]) + 1)
    elif match["first"] or match["end"]:
        numbers = range(int(match["first"] or 0), int(match["end"] or 2**31))
    return lambda partition: (
        partition.partition in numbers
        and topics.allows(partition.topic, exclude_internal=exclude_internal)
    )


if __name__ == "__main__":
    sys.exit(main())
