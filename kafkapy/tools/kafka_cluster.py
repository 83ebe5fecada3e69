"""bin/kafka-cluster: the id of a cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.tools.admin_connection import connect_admin
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config


def parser() -> CommandParser:
    command = CommandParser("kafka-cluster", "Show what concerns a cluster as a whole.")
    actions = command.add_subparsers(
        metavar="COMMAND", dest="action", required=True, help="cluster-id"
    )
    text = "show the id of the cluster"
    cluster_id = actions.add_parser("cluster-id", help=text, description=text)
    add_bootstrap_server(cluster_id)
    add_command_config(cluster_id, "--config")
    return command


def run(arguments: Sequence[str]) -> int:
    parsed = parser().parse_args(arguments)
    parsed.command_config = parsed.config
    with connect_admin(parsed) as admin:
        cluster_id = admin.describe_cluster().cluster_id
    if cluster_id is None:
        fail(f"{parsed.bootstrap_server} does not tell the id of its cluster")
    print(f"Cluster ID: {cluster_id}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


if __name__ == "__main__":
    sys.exit(main())
