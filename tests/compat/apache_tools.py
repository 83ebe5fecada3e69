"""Apache Kafka's own commands, all run in one JVM."""

import json
import select
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.compat.outcome import Outcome
from tests.compat.tools import MAIN_CLASSES, java_command

_TIMEOUT_S = 40

KafkaTool = Callable[..., str]


class ApacheTools:
    """Runs them one at a time, through the ToolRunner of tests/compat/java.

    A command that does not end takes its JVM with it; the next one gets a new JVM.
    """

    def __init__(self, work_dir: Path) -> None:
        self._errors = (work_dir / "tool-runner.txt").open("wb")
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            # It keeps tools from ending the JVM, by a security manager.
            java_command("ToolRunner", options=["-Djava.security.manager=allow"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )

    def run(self, command: str, *arguments: str, stdin: str = "") -> Outcome:
        if self._process.poll() is not None:
            self._process = self._start()
        assert self._process.stdin is not None and self._process.stdout is not None
        request = {"main": MAIN_CLASSES[command], "args": arguments, "stdin": stdin}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        # Not select.select: it knows no descriptor above 1023, and a worker may have that many.
        poller = select.poll()
        poller.register(self._process.stdout, select.POLLIN)
        ready = poller.poll(_TIMEOUT_S * 1000)
        answer = self._process.stdout.readline() if ready else b""
        if not answer:
            self._end(0)
            raise AssertionError(f"{command} {arguments} did not end in {_TIMEOUT_S} s")
        return Outcome(**json.loads(answer))

    def close(self) -> None:
        self._end(10)
        self._errors.close()

    def _end(self, timeout_s: float) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            self._process.stdout.close()
