"""Brokers the compatibility tests run against, each a process of its own.

Normally that is bin/kafka-server-start. KAFKAPY_COMPAT_BROKER=apache starts Apache Kafka in its
place and KAFKAPY_COMPAT_BOOTSTRAP=host:port uses one that runs already, which is how the tests
themselves are proven right.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.compat.tools import java_command

_ROOT = Path(__file__).resolve().parents[2]
_START_TIMEOUT_S = 40
_STOP_TIMEOUT_S = 30
_JVM_ENDED_BY_SIGTERM = 143
_LISTENER = re.compile(r"PLAINTEXT://127\.0\.0\.1:([1-9]\d*)")
_READY = re.compile(r"started in \d+ ms")

# What differs from a production broker, for either kind: no rebalance delays, one replica, and no
# retention: records that say they are years old stay, however long the tests take.
_COMMON_OVERRIDES = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.initial.task.delay.ms": "86400000",
}


@dataclass(slots=True)
class Broker:
    """A broker under test; `process` and `log_dir` are None for one that was running already."""

    bootstrap: str
    log_dir: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    output: Path | None = None
    is_apache: bool = False
    _output_file: IO[bytes] | None = field(default=None, repr=False)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.bootstrap.rsplit(":", 1)
        return host, int(port)

    @property
    def clean_exit_code(self) -> int:
        return _JVM_ENDED_BY_SIGTERM if self.is_apache else 0

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def stop(self) -> int:
        """Asks for a clean shutdown; the exit code."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, signal_number: int) -> int:
        assert self.process is not None and self._output_file is not None
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            return self.process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"did not stop: {self.tail()}") from None
        finally:
            self._output_file.close()

    def tail(self) -> str:
        assert self.output is not None
        return self.output.read_text(errors="replace")[-4000:]


def start_broker(work_dir: Path, *, port: int = 0, overrides: Mapping[str, str] = {}) -> Broker:
    """Starts the kind of broker the environment asks for and waits until it says it is ready."""
    if os.environ.get("KAFKAPY_COMPAT_BROKER") == "apache":
        return start_apache(work_dir, port=port, overrides=overrides)
    return start_kafkapy(work_dir, port=port, overrides=overrides)


def start_kafkapy(work_dir: Path, *, port: int = 0, overrides: Mapping[str, str] = {}) -> Broker:
    log_dir = work_dir / "logs"
    settings = {
        **_COMMON_OVERRIDES,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(log_dir),
        "prometheus.port": "-1",
        **overrides,
    }
    command = [str(_ROOT / "bin" / "kafka-server-start"), str(_ROOT / "etc" / "server.properties")]
    for key, value in settings.items():
        command += ["--override", f"{key}={value}"]
    return _start(command, work_dir, log_dir)


def start_apache(work_dir: Path, *, port: int = 0, overrides: Mapping[str, str] = {}) -> Broker:
    log_dir = work_dir / "logs"
    settings = {
        **_COMMON_OVERRIDES,
        "broker.id": "0",
        # A busy machine may let a broker wait for long.
        "zookeeper.session.timeout.ms": "30000",
        "controlled.shutdown.retry.backoff.ms": "50",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(log_dir),
        **overrides,
    }
    work_dir.mkdir(parents=True, exist_ok=True)
    properties = work_dir / "apache.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    zookeeper_dir = str(work_dir / "zookeeper")
    command = java_command("ApacheKafka", str(properties), zookeeper_dir, heap="512m")
    broker = _start(command, work_dir, log_dir)
    broker.is_apache = True
    return broker


def _start(command: list[str], work_dir: Path, log_dir: Path) -> Broker:
    work_dir.mkdir(parents=True, exist_ok=True)
    output = work_dir / "output.txt"
    output_file = output.open("ab")
    already_written = output.stat().st_size
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output_file, stderr=subprocess.STDOUT
    )
    broker = Broker("", log_dir, process, output, _output_file=output_file)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        said = output.read_bytes()[already_written:].decode(errors="replace")
        listener = _LISTENER.search(said)
        if listener is not None and _READY.search(said):
            broker.bootstrap = f"127.0.0.1:{listener[1]}"
            return broker
        time.sleep(0.01)
    broker.kill()
    raise AssertionError(f"did not start: {broker.tail()}")
