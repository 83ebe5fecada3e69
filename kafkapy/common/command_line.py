"""What every command has in common: its parser, one clear line for an error, exit code 1.

A command is a module kafkapy/tools/kafka_x.py, or a package of that name, with three functions
(kafka-pipeline, which needs Spark, is in kafkapy/pipeline):

    parser()          a CommandParser, from which help and shell completion are made
    run(arguments)    does the work; the exit code
    main(arguments)   `return run_command(run, arguments)`

and a launcher bin/kafka-x, which is the same file for all in kafkapy/tools.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any, NoReturn

from kafkapy import __version__
from kafkapy.common.errors import KafkaError
from kafkapy.utils.compiled import IS_COMPILED

Run = Callable[[Sequence[str]], int]

# What a shell reports for a process that SIGINT or SIGPIPE has ended.
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_OUTPUT_ERRORS = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def name_and_version() -> str:
    """Also says whether the hot modules run compiled."""
    return f"kafkapy {__version__}{' (compiled)' if IS_COMPILED else ''}"


def fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(1)


def run_command(command: Run, arguments: Sequence[str] | None = None) -> int:
    """`command` with the process's arguments unless given; expected errors become one line."""
    _open_closed_streams()
    try:
        code = command(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KafkaError as e:
        fail(str(e) or type(e).__name__)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader, `head` for one, has seen enough.
        _drop_output()
        return _BROKEN_PIPE
    except OSError as e:
        if not is_of_output(e):
            raise
        _drop_output()
        fail(f"Cannot write: {e.strerror}")
    return code


def is_of_output(error: OSError) -> bool:
    """Whether it came of writing: nobody reads on, or a disk is full. run_command tells of it."""
    return error.errno in _OUTPUT_ERRORS


def _open_closed_streams() -> None:
    """A standard stream that the process was started without is as good as /dev/null.

    Python has None in its place, and print(file=None) writes to standard output.
    """
    sys.stdin = sys.stdin or _open_null("r")
    sys.stdout = sys.stdout or _open_null("w")
    sys.stderr = sys.stderr or _open_null("w")


def _open_null(mode: str) -> IO[str]:
    return open(os.devnull, mode)


def _drop_output() -> None:
    """What is buffered still must not be written when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class CommandParser(argparse.ArgumentParser):
    """Arguments as Kafka's tools take them: `--name value` or `--name=value`, whole names only.

    An option that takes one value may be given once: Kafka's tools refuse it twice rather than
    pick one. Wrong arguments are one line and exit code 1.
    """

    def __init__(self, prog: str, description: str = "", **settings: Any) -> None:
        settings.setdefault("formatter_class", _HelpFormatter)
        super().__init__(prog=prog, description=description, allow_abbrev=False, **settings)
        self.register("action", None, _StoreOnce)
        self.register("action", "store", _StoreOnce)
        self.add_argument(
            "--version",
            action="version",
            version=name_and_version(),
            help="show the version and end",
        )

    def error(self, message: str) -> NoReturn:
        fail(f"{message} (see {self.prog} --help)")

    def require_one_of(self, parsed: argparse.Namespace, *options: str) -> str:
        """Which one of these options was given; exactly one has to be."""
        given = [option for option in options if getattr(parsed, _field(option))]
        if len(given) != 1:
            self.error(f"Command must include exactly one action: {', '.join(options)}")
        return given[0]


def _field(option: str) -> str:
    return option.lstrip("-").replace("-", "_").replace(".", "_")


class _StoreOnce(argparse.Action):
    """Like argparse's own store, but not twice."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        # On the namespace, since a parser may be used again.
        seen: set[str] = namespace.__dict__.setdefault("_seen", set())
        if option_string is not None and self.dest in seen:
            parser.error(f"{option_string} can be given only once")
        seen.add(self.dest)
        setattr(namespace, self.dest, values)


class _HelpFormatter(argparse.HelpFormatter):
    """Names of Kafka's options are long: leave them room."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=100)


def parse_overrides(overrides: Sequence[str], option: str = "--override") -> dict[str, str]:
    """`key=value` words as a dict; a later one wins."""
    properties = {}
    for override in overrides:
        name, separator, value = override.partition("=")
        if not separator or not name.strip():
            fail(f"{option} {override}: expected key=value")
        properties[name.strip()] = value.strip()
    return properties


def parse_key_values(words: Sequence[str], option: str) -> dict[str, str]:
    """As parse_overrides, but blanks count and a word without a value has an empty one."""
    properties = {}
    for word in words:
        name, _, value = word.partition("=")
        if not name:
            fail(f"{option} {word}: expected key=value")
        properties[name] = value
    return properties
