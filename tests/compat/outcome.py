"""What a command did, whoever's it is."""

import importlib
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kafkapy.tools.kafka_completion import command_modules


@dataclass(frozen=True, slots=True)
class Outcome:
    """The exit code of a command and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


def run_ours(command: str, *arguments: str, stdin: str | bytes = "") -> Outcome:
    """kafkapy's command of this name, in this process. Standard streams are the test's own."""
    module = importlib.import_module(command_modules()[command])
    with _streams(stdin.encode() if isinstance(stdin, str) else stdin) as (out, err):
        try:
            code = module.main(arguments)
        except SystemExit as e:
            code = e.code if isinstance(e.code, int) else int(e.code is not None)
        out.flush()
        err.flush()
        return Outcome(code, _text(out), _text(err))


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    saved = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    sys.stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    try:
        yield sys.stdout, sys.stderr
    finally:
        sys.stdin, sys.stdout, sys.stderr = saved


def _text(stream: io.TextIOWrapper) -> str:
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
