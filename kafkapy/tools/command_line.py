"""What every command has in common: one clear line for an error, exit code 1."""

import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from kafkapy import __version__
from kafkapy.common.errors import KafkaError
from kafkapy.utils import varint


def name_and_version() -> str:
    """Also says whether the hot modules run compiled: they are compiled all or none."""
    return f"kafkapy {__version__}{'' if varint.__file__.endswith('.py') else ' (compiled)'}"


def fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(1)


def run_command(command: Callable[[Sequence[str]], int]) -> int:
    """`command` with the process's arguments; expected errors become one line."""
    try:
        return command(sys.argv[1:])
    except KafkaError as e:
        fail(str(e))
    except KeyboardInterrupt:
        return 130


def parse_overrides(overrides: Sequence[str]) -> dict[str, str]:
    properties = {}
    for override in overrides:
        name, separator, value = override.partition("=")
        if not separator or not name.strip():
            fail(f"--override {override}: expected key=value")
        properties[name.strip()] = value.strip()
    return properties
