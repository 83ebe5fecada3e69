"""The command as a process of its own: scraped, killed, told to stop, resumed, failing."""

import json
import os
import re
import shutil
import signal
from collections import defaultdict
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest

from kafkapy.testing import BrokerHandle
from tests.helpers.pipelines import send
from tests.helpers.spark import needs_limits
from tests.pipeline.processes.pipeline_runs import TIMEOUT_S, PipelineRuns

_FILE = """
[pipeline]
name = "killed"
checkpoint = "${DATA}/checkpoint"
progress_log = "${DATA}/progress.jsonl"
metrics_port = 0

[spark.conf]
"spark.ui.enabled" = false
"spark.sql.warehouse.dir" = "${DATA}/warehouse"
"spark.driver.defaultJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"spark.driver.extraJavaOptions" = "-Djava.io.tmpdir=${DATA}"

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


def _committed_offsets(files: Path) -> dict[int, list[int]]:
    """Of the rows in files that Spark has committed, by partition, in order."""
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


@pytest.mark.timeout(3 * TIMEOUT_S)
@needs_limits
def test_run_that_is_killed_told_to_stop_or_failing_leaves_each_row_once(
    spark_broker: BrokerHandle, topic: str, tmp_path: Path
) -> None:
    servers = spark_broker.bootstrap_servers
    environment = {"BOOTSTRAP": servers, "TOPIC": topic, "LIMIT": _NO_LIMIT}
    pipeline = PipelineRuns(tmp_path, _FILE, environment)
    send(spark_broker, topic, [b"%d" % n for n in range(_RECORDS)])

    with pipeline.running() as process:
        pipeline.await_batches(process, 2)
        page = _scraped(pipeline.said())
        os.killpg(process.pid, signal.SIGKILL)
    rows = re.search(r'kafkapy_pipeline_rows_total{query="files"} (\S+)', page)
    killed = _committed_offsets(tmp_path / "files")
    assert rows is not None and float(rows[1]) >= 200, page

    # On the Java that pip installs, and while it is at the next batch: many are left to do.
    without_java = {"PATH": str(_commands_without_java(tmp_path / "bin")), "JAVA_HOME": ""}
    with pipeline.running(**without_java) as process:
        pipeline.await_batches(process, 1)
        process.terminate()
        assert process.wait(timeout=TIMEOUT_S) == 0, pipeline.said()
    stopped = _committed_offsets(tmp_path / "files")
    assert "Traceback" not in pipeline.said()

    with pipeline.running(LIMIT=str(len(stopped[0]))) as process:
        assert process.wait(timeout=TIMEOUT_S) == 1, pipeline.said()
    last = pipeline.said().splitlines()[-1]
    assert "query files failed" in last and "that is too much" in last

    for partition, offsets in _committed_offsets(tmp_path / "files").items():
        assert offsets == stopped[partition] == list(range(len(offsets)))
        assert 0 < len(killed[partition]) < len(offsets) < _RECORDS / 2
