"""bin/kafka-delete-records: delete what is before given offsets."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafkapy.common.command_line import CommandParser, run_command
from kafkapy.tools.admin_connection import connect_admin
from kafkapy.tools.client_arguments import add_bootstrap_server, add_command_config
from kafkapy.tools.json_files import (
    int_of,
    objects_of,
    partition_of,
    read_json_object,
    refuse_duplicates,
)


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-delete-records", "Delete the records of partitions that are before given offsets."
    )
    add_bootstrap_server(command)
    add_command_config(command)
    command.add_argument(
        "--offset-json-file",
        metavar="FILE",
        required=True,
        help='the offsets: {"partitions": [{"topic": "t", "partition": 0, "offset": 10}],'
        ' "version": 1}; offset -1 deletes all records',
    )
    return command


def run(arguments: Sequence[str]) -> int:
    parsed = parser().parse_args(arguments)
    path = parsed.offset_json_file
    entries = objects_of(read_json_object(path), "partitions", path)
    partitions = [partition_of(entry, path) for entry in entries]
    refuse_duplicates(partitions, path)
    offsets = {
        partition: int_of(entry, "offset", path)
        for partition, entry in zip(partitions, entries, strict=True)
    }
    with connect_admin(parsed) as admin:
        print("Executing records delete operation")
        deleted = admin.delete_records(offsets, raise_errors=False)
    print("Records delete operation completed:")
    for partition in offsets:
        error = deleted.errors.get(partition)
        if error is None:
            print(f"partition: {partition}\tlow_watermark: {deleted[partition]}")
        else:
            print(f"partition: {partition}\terror: {error}")
    return 1 if deleted.errors else 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


if __name__ == "__main__":
    sys.exit(main())
