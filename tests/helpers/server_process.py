"""The broker as a process of its own, with free ports and an output to look at."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.helpers.broker import Client

ROOT = Path(__file__).resolve().parents[2]
PROPERTIES = ROOT / "etc" / "server.properties"
# Without the launcher, which looks for a Python first.
START = (sys.executable, "-m", "kafkapy.tools.kafka_server_start")

_START_TIMEOUT_S = 40
_STOP_TIMEOUT_S = 30
_LISTENER = re.compile(r"PLAINTEXT://127\.0\.0\.1:([1-9]\d*)")
_READY = re.compile(r"started in \d+ ms\n")


def overrides(log_dirs: str | Path, properties: Mapping[str, str] | None = None) -> list[str]:
    """The arguments after the property file; only loopback, no metrics unless told."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(log_dirs),
        "prometheus.port": "-1",
        **(properties or {}),
    }
    return [word for key, value in settings.items() for word in ("--override", f"{key}={value}")]


def run_server_start(*arguments: str) -> subprocess.CompletedProcess[str]:
    """For a command that ends by itself."""
    return subprocess.run([*START, *arguments], capture_output=True, text=True, timeout=40)


class ServerProcess:
    """A broker that has said it is ready."""

    def __init__(
        self,
        log_dirs: str | Path,
        output: Path,
        properties: Mapping[str, str] | None = None,
        *,
        log_level: str = "WARNING",
        wrapper: Sequence[str] = (),
    ) -> None:
        """`wrapper` is a command that runs the broker, such as strace with its options."""
        arguments = ["--log-level", log_level, *overrides(log_dirs, properties)]
        self._output = output
        said_before = output.stat().st_size if output.exists() else 0
        with output.open("ab") as file:
            self.process = subprocess.Popen(
                [*wrapper, *START, str(PROPERTIES), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not _READY.search(said := self.output(said_before)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"did not start: {said}")
            time.sleep(0.01)
        listener = _LISTENER.search(said)
        assert listener is not None, said
        self.address = ("127.0.0.1", int(listener[1]))

    def output(self, start: int = 0) -> str:
        """All it has printed, from a position on."""
        return self._output.read_bytes()[start:].decode(errors="replace")

    def client(self) -> Client:
        return Client(self.address)

    @property
    def pid(self) -> int:
        return self.process.pid

    def memory_mb(self, field: str = "VmRSS") -> float:
        """Resident memory now, or with VmHWM the most it ever was."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"{field}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    def reset_peak_memory(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def open_sockets(self) -> int:
        links = 0
        for descriptor in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                links += os.readlink(descriptor).startswith("socket:")
            except FileNotFoundError:
                continue
        return links

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Asks for a clean shutdown; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        return self.wait()

    def wait(self, timeout_s: float = _STOP_TIMEOUT_S) -> int:
        """The exit code, once it has ended."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not stop: {self.output()[-4000:]}") from None

    def kill(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def running_server(
    log_dirs: str | Path,
    output: Path,
    properties: Mapping[str, str] | None = None,
    *,
    log_level: str = "WARNING",
    wrapper: Sequence[str] = (),
) -> Iterator[ServerProcess]:
    """A broker that is killed at the end unless the test has stopped it."""
    server = ServerProcess(log_dirs, output, properties, log_level=log_level, wrapper=wrapper)
    try:
        yield server
    finally:
        server.kill()
