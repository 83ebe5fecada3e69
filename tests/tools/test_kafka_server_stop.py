"""bin/kafka-server-start -daemon and bin/kafka-server-stop, which belong together.

The stop command without arguments would end brokers that are not this test's: it is never run.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.api import create_topic
from tests.helpers.broker import Client
from tests.helpers.server_process import PROPERTIES, ROOT, overrides, running_server
from tests.helpers.waiting import wait_until

_ENVIRONMENT = {**os.environ, "PYTHON": sys.executable}


def _run(tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "bin" / tool), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=_ENVIRONMENT,
    )


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def test_daemon_is_ready_when_the_command_returns_and_stop_ends_it_cleanly(tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    arguments = [str(PROPERTIES), *overrides(log_dir)]

    started = _run("kafka-server-start", "-daemon", *arguments)
    pid = int((log_dir / "kafkapy-server.pid").read_text())
    try:
        port = int(started.stdout.split("PLAINTEXT://127.0.0.1:")[1].split()[0])
        with Client(("127.0.0.1", port)) as client:
            create_topic(client, "t")
            # What it says from now on goes to the file: here the refusal of a bad request.
            client.send_frame(b"\x7f\x7f garbage")
            assert client.is_closed()
        output = log_dir / "kafkapy-server.out"
        wait_until(lambda: output.exists() and "WARNING" in output.read_text())
        stopped = _run("kafka-server-stop", *arguments)
        left_running = _is_running(pid)
    finally:
        if _is_running(pid):
            os.kill(pid, signal.SIGKILL)
    stopped_again = _run("kafka-server-stop", *arguments)

    assert started.returncode == 0, started.stdout + started.stderr
    assert "started in" in started.stdout
    assert stopped.returncode == 0, stopped.stderr
    assert not left_running
    assert (log_dir / ".kafka_cleanshutdown").exists()
    assert not (log_dir / "kafkapy-server.pid").exists()
    assert (stopped_again.returncode, stopped_again.stderr) == (1, "No kafka server to stop\n")


def test_daemon_that_cannot_start_says_why_and_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ended = _run("kafka-server-start", "-daemon", str(PROPERTIES), *overrides(tmp_path / "file"))

    assert ended.returncode == 1
    assert "log.dirs" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_pid_left_by_a_killed_broker_is_not_somebody_else_s(tmp_path: Path) -> None:
    log_dir = tmp_path / "logs"
    with running_server(log_dir, tmp_path / "output") as server:
        server.kill()
    pid_file = log_dir / "kafkapy-server.pid"
    assert pid_file.exists()
    pid_file.write_text(f"{os.getpid()}\n")

    stopped = _run("kafka-server-stop", str(PROPERTIES), *overrides(log_dir))

    assert (stopped.returncode, stopped.stderr) == (1, "No kafka server to stop\n")


@pytest.mark.parametrize("arguments", [["no-such.properties"], [str(PROPERTIES), "--override"]])
def test_stop_with_bad_arguments_stops_nothing(arguments: list[str]) -> None:
    ended = _run("kafka-server-stop", *arguments)

    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
