"""The broker being measured, as a process of its own, started the way a person starts it."""

import math
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.broker_client import BenchmarkError, BrokerClient

ROOT = Path(__file__).resolve().parents[2]
_START_TIMEOUT_S = 60
_STOP_TIMEOUT_S = 30
# Of /proc/PID/stat, counted behind the command.
_UTIME = 11
_STIME = 12
_LISTENER = re.compile(r"PLAINTEXT://127\.0\.0\.1:([1-9]\d*)")
_READY = re.compile(r"started in \d+ ms")


@dataclass(frozen=True, slots=True)
class BrokerProcess:
    """A running broker. Whoever started it stops it."""

    process: subprocess.Popen[bytes]
    port: int
    ready_after_ms: float

    @staticmethod
    def start(
        work_dir: Path,
        properties: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> "BrokerProcess":
        """Returns when the broker has answered its first request; raises BenchmarkError.

        `variables` are added to the environment.
        """
        work_dir.mkdir(parents=True)
        overrides = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(work_dir / "logs"),
            "prometheus.port": "-1",
            **(properties or {}),
        }
        command = [str(ROOT / "bin" / "kafka-server-start"), str(ROOT / "etc/server.properties")]
        for key, value in overrides.items():
            command += ["--override", f"{key}={value}"]
        # As a person's shell has it: compiled modules are kept from one start to the next.
        environment = {
            key: value
            for key, value in os.environ.items()
            if key not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
        } | dict(variables or {})
        errors = work_dir / "stderr.txt"
        begun = time.monotonic()
        with errors.open("wb") as error_file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=error_file,
                env=environment,
            )
        try:
            port = _wait_for_listener(process)
            with BrokerClient("127.0.0.1", port) as client:
                client.check_ready()
        except BenchmarkError as e:
            _end(process)
            said = errors.read_text(errors="replace").strip()
            raise BenchmarkError(f"the broker did not start: {e}\n{said[-2000:]}") from e
        return BrokerProcess(process, port, (time.monotonic() - begun) * 1000)

    def resident_mb(self) -> float:
        return resident_mb(self.process.pid)

    def cpu_seconds(self) -> float:
        """Processor time it has used so far; NaN where there is no /proc."""
        status = Path(f"/proc/{self.process.pid}/stat")
        if not status.exists():
            return math.nan
        # The second field, the command, may hold blanks and parentheses of its own.
        fields = status.read_text().rpartition(")")[2].split()
        return (int(fields[_UTIME]) + int(fields[_STIME])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        _end(self.process)


def resident_mb(pid: int) -> float:
    """Memory a process holds, in units of 1,000,000 bytes; NaN where no tool tells."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text())
        kib = found[1] if found else "nan"
    else:
        command = ["ps", "-o", "rss=", "-p", str(pid)]
        kib = subprocess.run(command, capture_output=True, text=True).stdout.strip() or "nan"
    return float(kib) * 1024 / 1e6


def _wait_for_listener(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    deadline = time.monotonic() + _START_TIMEOUT_S
    said = ""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([process.stdout], [], [], left)[0]:
            break
        piece = os.read(process.stdout.fileno(), 65536)
        if not piece:
            raise BenchmarkError("it ended")
        said += piece.decode(errors="replace")
        listener = _LISTENER.search(said)
        if listener is not None and _READY.search(said):
            return int(listener[1])
    raise BenchmarkError(f"not ready after {_START_TIMEOUT_S} s")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
