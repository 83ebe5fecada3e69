"""load.c: compiled once into the cache, run as the client of a load and as the limit servers."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.broker_client import BenchmarkError
from tests.benchmarks.frames import Frames

_SOURCE = Path(__file__).with_name("load.c")
# Beyond its seconds a client only connects and waits for the last answers.
_CLIENT_GRACE_S = 30


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run of a load client measured."""

    requests: int
    requests_per_second: float
    sent_mb_per_second: float
    received_mb_per_second: float
    bytes_per_answer: float
    p50_ms: float
    p99_ms: float
    p999_ms: float


@dataclass(frozen=True, slots=True)
class LoadProgram:
    """The compiled program."""

    path: Path

    @staticmethod
    def build() -> "LoadProgram | None":
        """None where there is no C compiler; raises BenchmarkError when it refuses load.c."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            return None
        digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
        path = _cache_dir() / f"load-{digest}"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=path.parent) as work:
                command = [compiler, "-O2", "-o", f"{work}/load", str(_SOURCE)]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    raise BenchmarkError(f"{compiler} does not compile load.c:\n{done.stderr}")
                os.rename(f"{work}/load", path)
        return LoadProgram(path)

    @contextmanager
    def server(self, kind: str, size: int, file: Path | None) -> Iterator[int]:
        """Runs a limit server; gives its port."""
        command = [str(self.path), kind, "0", str(size), *([str(file)] if file else [])]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port:
                raise BenchmarkError(f"{kind} did not start")
            yield int(port)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def client(
        self,
        address: tuple[str, int],
        frames: Frames,
        *,
        connections: int,
        pipelined: int,
        seconds: float,
        check_errors: bool,
    ) -> Sample:
        """Runs a load; raises BenchmarkError when an answer is wrong or carries an error."""
        with tempfile.NamedTemporaryFile() as requests:
            for request in frames.requests:
                requests.write(request)
            requests.flush()
            command = [str(self.path), "client", address[0], str(address[1])]
            command += [str(connections), str(pipelined), str(seconds), requests.name]
            if check_errors:
                command.append(str(frames.error_at))
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=seconds + _CLIENT_GRACE_S
                )
            except subprocess.TimeoutExpired as e:
                raise BenchmarkError("the load client did not come to an end") from e
        if done.returncode != 0:
            raise BenchmarkError(f"the load client stopped: {done.stderr.strip()}")
        return parse_sample(done.stdout)


def parse_sample(line: str) -> Sample:
    """The client's line of JSON."""
    told = json.loads(line)
    return Sample(
        requests=told["requests"],
        requests_per_second=told["requests_per_second"],
        sent_mb_per_second=told["bytes_sent"] / told["seconds"] / 1e6,
        received_mb_per_second=told["bytes_received"] / told["seconds"] / 1e6,
        bytes_per_answer=told["bytes_received"] / max(told["requests"], 1),
        p50_ms=told["p50_us"] / 1000,
        p99_ms=told["p99_us"] / 1000,
        p999_ms=told["p999_us"] / 1000,
    )


def _cache_dir() -> Path:
    """As bin/fetch-test-tools computes it."""
    if explicit := os.environ.get("KAFKAPY_TEST_CACHE"):
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkapy"
