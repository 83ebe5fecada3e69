"""The arguments that name a broker: its property file and overrides."""

import argparse
from pathlib import Path

from kafkapy.common.command_line import fail, parse_overrides
from kafkapy.utils.properties import load_properties


def add_server_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "properties",
        metavar="server.properties",
        nargs=None if required else "?",
        help="the broker's property file",
    )
    parser.add_argument(
        "--override",
        metavar="key=value",
        action="append",
        default=[],
        help="a property that takes the place of the file's (may be repeated)",
    )


def server_properties(arguments: argparse.Namespace) -> dict[str, str]:
    path = Path(arguments.properties)
    try:
        properties = load_properties(path)
    except (OSError, UnicodeDecodeError) as e:
        fail(f"Cannot read {path}: {getattr(e, 'strerror', None) or e}")
    return {**properties, **parse_overrides(arguments.override)}
