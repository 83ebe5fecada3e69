"""bin/kafka-leader-election: let partitions elect leaders."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from kafkapy.clients.admin import ElectionType
from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.common.errors import ElectionNotNeededError
from kafkapy.common.types import TopicPartition
from kafkapy.tools.admin_connection import connect_admin
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config
from kafkapy.tools.json_files import (
    objects_of,
    partition_of,
    read_json_object,
    refuse_duplicates,
)
from kafkapy.tools.option_rules import OptionRules

_SCOPES = ("--topic", "--all-topic-partitions", "--path-to-json-file")


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-leader-election",
        "Elect leaders of partitions: the preferred ones, which are the first of the replicas, or,"
        " of partitions without one, any that is alive.",
    )
    add_bootstrap_server(command)
    add_command_config(command, "--admin.config")
    command.add_argument(
        "--election-type",
        metavar="TYPE",
        type=_election_type,
        required=True,
        help="preferred: where another replica leads; unclean: where none does, at the price of"
        " records that only others had",
    )
    command.add_argument("--topic", metavar="TOPIC", help="the topic of the partition")
    command.add_argument("--partition", metavar="N", type=int, help="the partition of --topic")
    command.add_argument(
        "--all-topic-partitions", action="store_true", help="all partitions for which it applies"
    )
    command.add_argument(
        "--path-to-json-file",
        metavar="FILE",
        help='the partitions: {"partitions": [{"topic": "t", "partition": 0}]}',
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    rules = OptionRules(command, parsed)
    scope = rules.exactly_one(_SCOPES)
    if scope == "--topic":
        rules.required("--partition")
    rules.only_with("--partition", ("--topic",))
    kind: ElectionType = parsed.election_type
    partitions = _partitions(parsed)
    with connect_admin(parsed) as admin:
        elections = admin.elect_leaders(kind, partitions, raise_errors=False)
    failed = {
        partition: error
        for partition, error in elections.errors.items()
        if not isinstance(error, ElectionNotNeededError)
    }
    unneeded = [partition for partition in elections.errors if partition not in failed]
    if elections.successes:
        print(
            f"Successfully completed leader election ({kind.name}) for partitions"
            f" {_names(elections.successes)}"
        )
    if unneeded:
        print(f"Valid replica already elected for partitions {_names(unneeded)}")
    for partition, error in sorted(failed.items()):
        print(f"{partition} could not elect ({kind.name}) a leader: {error}", file=sys.stderr)
    return 1 if failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _election_type(text: str) -> ElectionType:
    try:
        return ElectionType[text.upper()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"{text} is neither preferred nor unclean") from None


def _partitions(parsed: argparse.Namespace) -> list[TopicPartition] | None:
    """None: all."""
    if parsed.topic is not None:
        return [TopicPartition(parsed.topic, parsed.partition)]
    path = parsed.path_to_json_file
    if path is None:
        return None
    entries = objects_of(read_json_object(path), "partitions", path)
    partitions = [partition_of(entry, path) for entry in entries]
    refuse_duplicates(partitions, path)
    if not partitions:
        fail(f"{path} has no partitions")
    return partitions


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))


if __name__ == "__main__":
    sys.exit(main())
