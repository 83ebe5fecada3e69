"""The command as a process of its own: scraped, killed, told to stop, resumed, failing."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest

from kafkapy.pipeline.jobs.progress.progress_log import read_progress_log
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress
from kafkapy.testing import BrokerHandle
from tests.helpers.pipelines import send
from tests.helpers.waiting import wait_until

_FILE = """
[pipeline]
name = "killed"
checkpoint = "${DATA}/checkpoint"
progress_log = "${DATA}/progress.jsonl"
metrics_port = 0

[spark.conf]
"spark.ui.enabled" = false
"spark.sql.warehouse.dir" = "${DATA}/warehouse"
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

[[source]]
name = "records"
type = "topic"
bootstrap_servers = "${BOOTSTRAP}"
topics = "${TOPIC}"
options = { maxOffsetsPerTrigger = 100 }

[[step]]
name = "checked"
sql = "SELECT *, if(offset < ${LIMIT}, '', raise_error('that is too much')) AS note FROM records"

[[sink]]
name = "files"
from = "checked"
type = "parquet"
path = "${DATA}/files"
"""
_NO_LIMIT = "1000000"
_RECORDS = 1000
_TIMEOUT_S = 240
_PAUSE_S = 0.3


class _Pipeline:
    """The file above in a directory, and what its runs leave there."""

    def __init__(self, directory: Path, broker: BrokerHandle, topic: str) -> None:
        self._directory = directory
        self._environment = {
            "BOOTSTRAP": broker.bootstrap_servers,
            "TOPIC": topic,
            "DATA": str(directory),
            "LIMIT": _NO_LIMIT,
        }
        (directory / "p.toml").write_text(_FILE)

    @contextmanager
    def running(self, *options: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """In a group of its own with its JVM and workers, none of which outlives the block."""
        command = [sys.executable, "-m", "kafkapy.pipeline.kafka_pipeline", "run"]
        with (
            open(self._directory / "stderr", "w") as stderr,
            subprocess.Popen(
                [*command, str(self._directory / "p.toml"), "--master", "local[1]", *options],
                env={**os.environ, **self._environment, **environment},
                cwd=self._directory,
                start_new_session=True,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                text=True,
            ) as process,
        ):
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def said(self) -> str:
        """By the last run, on standard error."""
        return (self._directory / "stderr").read_text()

    def batches(self) -> int:
        """Of all runs."""
        log = self._directory / "progress.jsonl"
        events = read_progress_log(log) if log.exists() else []
        return sum(isinstance(event, QueryProgress) for event in events)

    def await_batches(self, process: subprocess.Popen[str], number: int) -> None:
        """Until there are so many more, while the process is still at work."""
        wanted = self.batches() + number
        wait_until(
            lambda: process.poll() is not None or self.batches() >= wanted,
            timeout=_TIMEOUT_S,
            pause=_PAUSE_S,
        )
        assert process.poll() is None, self.said()

    def committed_offsets(self) -> dict[int, list[int]]:
        """Of the rows in files that Spark has committed, by partition, in order."""
        files = self._directory / "files"
        paths = set()
        for log in (files / "_spark_metadata").glob("[0-9]*"):
            for line in log.read_text().splitlines()[1:]:
                paths.add(unquote(urlsplit(json.loads(line)["path"]).path))
        offsets = defaultdict(list)
        for path in paths:
            table = pq.read_table(path, columns=["partition", "offset"], partitioning=None)
            for row in table.to_pylist():
                offsets[row["partition"]].append(row["offset"])
        return {partition: sorted(found) for partition, found in offsets.items()}


def _commands_without_java(directory: Path) -> Path:
    """All other commands of this machine."""
    directory.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for command in Path(place).iterdir() if Path(place).is_dir() else ():
            link = directory / command.name
            if command.name != "java" and not link.is_symlink():
                link.symlink_to(command)
    assert shutil.which("java", path=str(directory)) is None
    return directory


def _scraped(said: str) -> str:
    """What the pipeline tells Prometheus, at the address that it has named."""
    address = re.search(r"^Metrics: (http://\S+)$", said, re.MULTILINE)
    assert address is not None, said
    with urlopen(address[1], timeout=10) as page:
        text: str = page.read().decode()
    return text


@pytest.mark.timeout(3 * _TIMEOUT_S)
def test_run_that_is_killed_told_to_stop_or_failing_leaves_each_row_once(
    spark_broker: BrokerHandle, topic: str, tmp_path: Path
) -> None:
    pipeline = _Pipeline(tmp_path, spark_broker, topic)
    send(spark_broker, topic, [b"%d" % n for n in range(_RECORDS)])

    with pipeline.running() as process:
        pipeline.await_batches(process, 2)
        page = _scraped(pipeline.said())
        os.killpg(process.pid, signal.SIGKILL)
    rows = re.search(r'kafkapy_pipeline_rows_total{query="files"} (\S+)', page)
    killed = pipeline.committed_offsets()
    assert rows is not None and float(rows[1]) >= 200, page

    # On the Java that pip installs, and while it is at the next batch: many are left to do.
    without_java = {"PATH": str(_commands_without_java(tmp_path / "bin")), "JAVA_HOME": ""}
    with pipeline.running(**without_java) as process:
        pipeline.await_batches(process, 1)
        process.terminate()
        assert process.wait(timeout=_TIMEOUT_S) == 0, pipeline.said()
    stopped = pipeline.committed_offsets()
    assert "Traceback" not in pipeline.said()

    with pipeline.running(LIMIT=str(len(stopped[0]))) as process:
        assert process.wait(timeout=_TIMEOUT_S) == 1, pipeline.said()
    last = pipeline.said().splitlines()[-1]
    assert "query files failed" in last and "that is too much" in last

    for partition, offsets in pipeline.committed_offsets().items():
        assert offsets == stopped[partition] == list(range(len(offsets)))
        assert 0 < len(killed[partition]) < len(offsets) < _RECORDS / 2
