"""bin/kafka-server-stop: stop brokers cleanly, and wait until they have stopped."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.common.config_def import parse
from kafkapy.storage.log_config import LogManagerConfig
from kafkapy.tools.pid_file import PidFile
from kafkapy.tools.server_arguments import add_server_arguments, server_properties

_START_MODULE = "kafkapy.tools.kafka_server_start"
_POLL_S = 0.02


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-server-stop", "Stop the broker of a property file, or all brokers of this user."
    )
    add_server_arguments(command, required=False)
    command.add_argument(
        "--timeout", metavar="seconds", type=float, default=60, help="how long to wait (default 60)"
    )
    return command


def run(arguments: Sequence[str]) -> int:
    parsed = parser().parse_args(arguments)
    pids = _pids_of(parsed) if parsed.properties else _all_pids()
    if not pids:
        fail("No kafka server to stop")
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue
        except PermissionError:
            fail(f"The broker with pid {pid} belongs to another user")
    deadline = time.monotonic() + parsed.timeout
    while running := [pid for pid in pids if _is_running(pid)]:
        if time.monotonic() > deadline:
            fail(f"Not stopped after {parsed.timeout:g} s: {', '.join(map(str, running))}")
        time.sleep(_POLL_S)
    return 0


def _pids_of(parsed: argparse.Namespace) -> list[int]:
    log_dir = Path(parse(LogManagerConfig, server_properties(parsed)).log_dirs[0])
    pid = PidFile(log_dir).read()
    # A pid that was left behind by a killed broker may be somebody else's by now.
    return [pid] if pid is not None and pid in _all_pids() else []


def _all_pids() -> list[int]:
    """Brokers are known by their command line, as Apache Kafka's own script knows them."""
    listing = subprocess.run(
        ["ps", "-U", str(os.getuid()), "-o", "pid=,args="], capture_output=True, text=True
    )
    pids = []
    for line in listing.stdout.splitlines():
        pid, _, command = line.strip().partition(" ")
        if _is_broker(command.split()):
            pids.append(int(pid))
    return pids


def _is_broker(words: list[str]) -> bool:
    """`python -m MODULE …`, or `python …/kafka-server-start …` where pip installed it."""
    if not words or "python" not in os.path.basename(words[0]):
        return False
    return _START_MODULE in words or any(
        os.path.basename(script) == "kafka-server-start" for script in words[1:2]
    )


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """A broker whose parent has not yet asked for its exit code has stopped all the same."""
    state = subprocess.run(["ps", "-p", str(pid), "-o", "stat="], capture_output=True, text=True)
    return state.stdout.strip().startswith("Z") or not state.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
