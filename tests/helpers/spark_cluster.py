"""A standalone Spark cluster on loopback, from the pyspark wheel."""

import itertools
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from kafkapy.pipeline.spark.java_runtime import find_java
from kafkapy.pipeline.spark.python_workers import worker_python
from tests.helpers.waiting import wait_until

SPARK_HOME = Path(pyspark.__file__).parent
_START_TIMEOUT_S = 90
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"
_PLACE = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
# Start-up and a small footprint count here, peak speed does not.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"


def _java_options() -> str:
    return f"{_JAVA_OPTIONS} -Djava.io.tmpdir={tempfile.gettempdir()}"


def spark_environment() -> dict[str, str]:
    """For Spark's own scripts: Java, this Python, loopback."""
    return {
        **find_java(os.environ).applied_to(os.environ),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "128m",
        "SPARK_DAEMON_JAVA_OPTS": _java_options(),
        "SPARK_LAUNCHER_OPTS": _java_options(),
        "PYSPARK_PYTHON": str(worker_python(os.environ)),
    }


class SparkDaemon:
    """A master or a worker, with all that it starts."""

    def __init__(self, directory: Path, name: str, command: list[str]) -> None:
        self._output = directory / f"{name}.txt"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [SPARK_HOME / "bin" / "spark-class", *command],
                cwd=directory,
                env=spark_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A worker's executors are of its group, and end with it.
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    @property
    def said(self) -> str:
        return self._output.read_text(errors="replace")

    def await_saying(self, pattern: str | re.Pattern[str]) -> re.Match[str]:
        def answer() -> bool:
            assert self._process.poll() is None, self.said[-4000:]
            return re.search(pattern, self.said) is not None

        wait_until(answer, _START_TIMEOUT_S, pause=0.05)
        found = re.search(pattern, self.said)
        assert found is not None
        return found

    def kill(self) -> None:
        """As kill -9 of it and its executors. Idempotent."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


class SparkCluster:
    """One master and some workers of one core each."""

    def __init__(self, directory: Path, *, workers: int) -> None:
        self._directory = directory
        self._numbers = itertools.count()
        self._master = SparkDaemon(
            directory, "master", ["org.apache.spark.deploy.master.Master", *_PLACE]
        )
        self.workers: list[SparkDaemon] = []
        try:
            self.address = self._master.await_saying(_MASTER)[1]
            self._start_workers(workers)
        except BaseException:
            self.stop()
            raise

    def replace_dead_workers(self) -> None:
        """The living come first then."""
        living = [worker for worker in self.workers if worker.is_running]
        dead = len(self.workers) - len(living)
        self.workers = living
        self._start_workers(dead)

    def _start_workers(self, count: int) -> None:
        started = []
        for number in itertools.islice(self._numbers, count):
            limits = ["--cores", "1", "--memory", "1g"]
            files = ["--work-dir", str(self._directory / f"work-{number}")]
            command = ["org.apache.spark.deploy.worker.Worker", *_PLACE, *limits, *files]
            daemon = SparkDaemon(self._directory, f"worker-{number}", [*command, self.address])
            self.workers.append(daemon)
            started.append(daemon)
        for worker in started:
            worker.await_saying(_REGISTERED)

    def submit_command(self, script: Path, *arguments: str, conf: Mapping[str, str]) -> list[str]:
        """What runs a script as a driver of this cluster."""
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": _java_options(),
            "spark.executor.extraJavaOptions": _java_options(),
            "spark.executor.memory": "512m",
            "spark.sql.warehouse.dir": str(self._directory / "warehouse"),
            **conf,
        }
        options = [f"--conf={name}={value}" for name, value in settings.items()]
        submit = str(SPARK_HOME / "bin" / "spark-submit")
        return [submit, "--master", self.address, *options, str(script), *arguments]

    def stop(self) -> None:
        for daemon in (*self.workers, self._master):
            daemon.kill()


@contextmanager
def running_cluster(directory: Path, *, workers: int) -> Iterator[SparkCluster]:
    cluster = SparkCluster(directory, workers=workers)
    try:
        yield cluster
    finally:
        cluster.stop()
