"""bin/kafka-broker-api-versions: which versions of which APIs brokers support."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.common.command_line import CommandParser, run_command
from kafkapy.common.errors import UnsupportedVersionError
from kafkapy.common.protocol.api_keys import ApiKeys, ListenerType
from kafkapy.tools.admin_connection import connect_admin
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-broker-api-versions", "Show which versions of which APIs each broker supports."
    )
    add_bootstrap_server(command)
    add_command_config(command)
    return command


def run(arguments: Sequence[str]) -> int:
    parsed = parser().parse_args(arguments)
    with connect_admin(parsed) as admin:
        nodes = sorted(admin.describe_cluster().nodes, key=lambda node: node.id)
        supported = admin.api_versions([node.id for node in nodes], raise_errors=False)
    for node in nodes:
        rack = "null" if node.rack is None else node.rack
        name = f"{node.host}:{node.port} (id: {node.id} rack: {rack})"
        if node.id in supported.errors:
            print(f"{name} -> ERROR: {supported.errors[node.id]}")
        else:
            print(f"{name} -> (\n\t" + ",\n\t".join(_lines(supported[node.id])) + "\n)")
    return 1 if supported.errors else 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _lines(versions: NodeApiVersions) -> Iterator[str]:
    for api in ApiKeys:
        if not api.listeners & (ListenerType.ZK_BROKER | ListenerType.BROKER):
            continue
        name = f"{api.api_name}({int(api)})"
        offered = versions.api_version(api)
        if offered is None:
            yield f"{name}: UNSUPPORTED"
            continue
        low, high = offered.lowest, offered.highest
        try:
            usable = f"usable: {versions.latest_usable_version(api)}"
        except UnsupportedVersionError:
            usable = "unusable: no version in common"
        yield f"{name}: {low if low == high else f'{low} to {high}'} [{usable}]"


if __name__ == "__main__":
    sys.exit(main())
