"""bin/kafka-log-dirs: what is in the log directories of brokers."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence

from kafkapy.clients.admin import LogDirDescription
from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.tools.admin_connection import connect_admin
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config
from kafkapy.tools.option_rules import OptionRules


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-log-dirs", "Show, as JSON, how much of its log directories each partition takes."
    )
    add_bootstrap_server(command)
    add_command_config(command)
    command.add_argument("--describe", action="store_true", help="show the directories (required)")
    command.add_argument(
        "--topic-list", metavar="TOPIC,…", default="", help="only these topics (default: all)"
    )
    command.add_argument(
        "--broker-list", metavar="ID,…", default="", help="only these brokers (default: all)"
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    OptionRules(command, parsed).required("--describe")
    topics = {topic for topic in parsed.topic_list.split(",") if topic}
    with connect_admin(parsed) as admin:
        existing = sorted(node.id for node in admin.describe_cluster().nodes)
        brokers = _brokers(parsed.broker_list) or existing
        unknown = sorted(set(brokers) - set(existing))
        if unknown:
            fail(f"--broker-list: there are no brokers {unknown}; there are {existing}")
        print("Querying brokers for log directories information")
        described = admin.describe_log_dirs(brokers)
    print(f"Received log directory information from brokers {','.join(map(str, brokers))}")
    shown = {
        "brokers": [
            {"broker": broker, "logDirs": _log_dirs(described[broker], topics)}
            for broker in brokers
        ],
        "version": 1,
    }
    print(json.dumps(shown, separators=(",", ":")))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _brokers(words: str) -> list[int]:
    try:
        return sorted({int(word) for word in words.split(",") if word})
    except ValueError:
        fail(f"--broker-list {words}: expected broker ids separated by commas")


def _log_dirs(
    described: Mapping[str, LogDirDescription], topics: Collection[str]
) -> list[dict[str, object]]:
    return [
        {
            "partitions": [
                {
                    "partition": str(partition),
                    "size": info.size,
                    "offsetLag": info.offset_lag,
                    "isFuture": info.is_future,
                }
                for partition, info in sorted(log_dir.replica_infos.items())
                if not topics or partition.topic in topics
            ],
            "error": None if log_dir.error is None else type(log_dir.error).__name__,
            "logDir": path,
        }
        for path, log_dir in sorted(described.items())
    ]


if __name__ == "__main__":
    sys.exit(main())
