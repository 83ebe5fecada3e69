"""The command as a process of its own: killed, started again on another Java, told to stop."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

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

[[sink]]
name = "files"
from = "records"
type = "parquet"
path = "${DATA}/files"
"""
_RECORDS = 1000
_TIMEOUT_S = 240
_PAUSE_S = 0.3


@contextmanager
def _running(directory: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """In a group of its own with its JVM and workers, none of which outlives the block."""
    command = [sys.executable, "-m", "kafkapy.pipeline.kafka_pipeline", "run"]
    with (
        open(directory / "stderr", "w") as stderr,
        subprocess.Popen(
            [*command, str(directory / "p.toml"), "--master", "local[1]"],
            env={**os.environ, **environment},
            cwd=directory,
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


def _committed(files: Path) -> Counter[tuple[int, int]]:
    """Partition and offset of each row in files that Spark has committed."""
    paths = set()
    for log in (files / "_spark_metadata").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            paths.add(unquote(urlsplit(json.loads(line)["path"]).path))
    rows: Counter[tuple[int, int]] = Counter()
    for path in paths:
        table = pq.read_table(path, columns=["partition", "offset"], partitioning=None)
        rows.update(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return rows


@pytest.mark.timeout(3 * _TIMEOUT_S)
def test_killed_run_is_resumed_on_the_java_that_pip_installs_and_told_to_stop(
    spark_broker: BrokerHandle, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "p.toml").write_text(_FILE)
    send(spark_broker, topic, [b"%d" % n for n in range(_RECORDS)])
    environment = {
        "BOOTSTRAP": spark_broker.bootstrap_servers,
        "TOPIC": topic,
        "DATA": str(tmp_path),
    }

    def batches() -> list[int]:
        if not (tmp_path / "progress.jsonl").exists():
            return []
        events = read_progress_log(tmp_path / "progress.jsonl")
        return [event.batch_id for event in events if isinstance(event, QueryProgress)]

    def said() -> str:
        return (tmp_path / "stderr").read_text()

    with _running(tmp_path, environment) as process:
        wait_until(
            lambda: process.poll() is not None or len(batches()) >= 2,
            timeout=_TIMEOUT_S,
            pause=_PAUSE_S,
        )
        assert process.poll() is None, said()
        os.killpg(process.pid, signal.SIGKILL)
    before = sum(_committed(tmp_path / "files").values())
    assert 0 < before < _RECORDS

    without_java = {"PATH": str(_commands_without_java(tmp_path / "bin")), "JAVA_HOME": ""}
    with _running(tmp_path, {**environment, **without_java}) as process:
        wait_until(
            lambda: (
                process.poll() is not None
                or sum(_committed(tmp_path / "files").values()) >= _RECORDS
            ),
            timeout=_TIMEOUT_S,
            pause=_PAUSE_S,
        )
        assert process.poll() is None, said()
        process.terminate()
        assert process.wait(timeout=_TIMEOUT_S) == 0, said()

    stored = Counter((r.partition, r.offset) for r in spark_broker.records(topic))
    assert _committed(tmp_path / "files") == stored
    assert "Traceback" not in said()
