"""The arguments that say how a command talks to brokers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from kafkapy.common.command_line import fail
from kafkapy.common.config_def import ConfigType, config_keys
from kafkapy.utils.properties import load_properties


def add_bootstrap_server(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        required=required,
        help="the brokers to connect to, as host:port[,host:port]; one that answers is enough",
    )


def add_command_config(parser: argparse.ArgumentParser, option: str = "--command-config") -> None:
    parser.add_argument(
        option,
        metavar="FILE",
        help="a property file with settings of the client that talks to the brokers",
    )


def load_property_file(path: str | None, *, keep_blanks: bool = False) -> dict[str, str]:
    """Its properties; none without a file."""
    if path is None:
        return {}
    try:
        return load_properties(Path(path), keep_blanks=keep_blanks)
    except (OSError, UnicodeDecodeError) as e:
        fail(f"Cannot read {path}: {getattr(e, 'strerror', None) or e}")


def known_settings(config_class: type, properties: Mapping[str, str]) -> dict[str, str]:
    """Those that a client of this config has; the others are named on standard error.

    Kafka's tools too only warn of settings they do not know: one property file often serves
    clients of several kinds, and names classes of another language.
    """
    keys = {key.name: key for key in config_keys(config_class)}
    known = {}
    for name, value in properties.items():
        key = keys.get(name)
        if key is None or key.type is ConfigType.CLASS or name == "interceptor.classes":
            print(f"The setting {name} has no effect here", file=sys.stderr)
        else:
            known[name] = value
    return known
