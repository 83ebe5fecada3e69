"""A pipeline into a partitioned table of Delta Lake or Iceberg, killed and resumed.

Each is made for certain releases of Spark, and not yet for the newest: what runs here is an
environment of its own with an older one (`bin/fetch-test-tools spark-delta`, `spark-iceberg`).
"""

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from kafkapy.testing import BrokerHandle
from tests.compat.tools import SparkWithLibrary
from tests.helpers.pipelines import send
from tests.pipeline.processes.pipeline_runs import TIMEOUT_S, PipelineRuns

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class TableFormat:
    """What a sink of this type is told, and the session; ${DATA} is the run's directory."""

    type: str
    sink: str
    sql_name: str
    conf: Mapping[str, str]


DELTA = TableFormat(
    type="delta",
    sink='path = "${DATA}/table"',
    sql_name="delta.`${DATA}/table`",
    conf={
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Of a few records, 50 tasks are too many.
        "spark.databricks.delta.snapshotPartitions": "1",
    },
)
ICEBERG = TableFormat(
    type="iceberg",
    sink='table = "lake.soak.rows"',
    sql_name="lake.soak.rows",
    conf={
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": "${DATA}/lake",
    },
)
# Of a few records, 200 tasks are too many.
_CONF = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}
# Prints how often the table has each value.
_COUNT = """
import json, sys
from pyspark.sql import SparkSession

table, conf = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config(map=json.loads(conf))
with builder.getOrCreate() as spark:
    rows = spark.sql(f"SELECT value, count(*) FROM {table} GROUP BY value").collect()
print(json.dumps(dict(map(tuple, rows))))
"""
_BATCHES_BEFORE_A_KILL = 2
_RECORDS_AT_ONCE = 50
_PAUSE_S = 0.2


class _Feed:
    """Sends records in a thread of its own, so that a pipeline always has a batch to write: not
    every Spark lets a topic that is full be read in several.
    """

    def __init__(self, broker: BrokerHandle, topic: str) -> None:
        # constant after construction
        self._broker = broker
        self._topic = topic
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed")
        # written by the thread, read once it has ended
        self.values: list[str] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            self._thread.join()

    def _run(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            begin = len(self.values)
            values = [f"value {n}" for n in range(begin, begin + _RECORDS_AT_ONCE)]
            send(self._broker, self._topic, [value.encode() for value in values])
            self.values += values


def survive_table_kills(
    directory: Path,
    broker: BrokerHandle,
    table: TableFormat,
    spark: SparkWithLibrary,
    kills: int,
) -> int:
    """How many records the table has, each once, after runs that were killed and one to the end."""
    topic = f"{table.type}-{uuid4().hex[:12]}"
    broker.create_topic(topic, partitions=2)
    conf = {**_CONF, **table.conf, "spark.jars": ",".join(map(str, spark.jars()))}
    environment = {
        "BOOTSTRAP": broker.bootstrap_servers,
        "TOPIC": topic,
        "PYTHONPATH": str(_ROOT),
    }
    pipeline = PipelineRuns(directory, _file(table, conf), environment, python=str(spark.python))
    feed = _Feed(broker, topic)

    with feed.running():
        for _ in range(kills):
            with pipeline.running() as process:
                pipeline.await_batches(process, _BATCHES_BEFORE_A_KILL)
                os.killpg(process.pid, signal.SIGKILL)
    with pipeline.running("--once") as process:
        assert process.wait(timeout=TIMEOUT_S) == 0, pipeline.said()

    assert _counted(directory, spark, table, conf) == Counter(feed.values)
    return len(feed.values)


def _file(table: TableFormat, conf: Mapping[str, str]) -> str:
    settings = "\n".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in conf.items())
    return f"""
[pipeline]
name = "table"
checkpoint = "${{DATA}}/checkpoint"
progress_log = "${{DATA}}/progress.jsonl"

[spark.conf]
{settings}

[[source]]
name = "records"
type = "topic"
bootstrap_servers = "${{BOOTSTRAP}}"
topics = "${{TOPIC}}"

[[step]]
name = "rows"
sql = "SELECT partition, offset, CAST(value AS STRING) AS value FROM records"

[[sink]]
name = "table"
from = "rows"
type = "{table.type}"
{table.sink}
partition_by = ["partition"]
"""


def _counted(
    directory: Path, spark: SparkWithLibrary, table: TableFormat, conf: Mapping[str, str]
) -> dict[str, int]:
    arguments = [table.sql_name, json.dumps(conf)]
    done = subprocess.run(
        [
            *(str(spark.python), "-c", _COUNT),
            *(argument.replace("${DATA}", str(directory)) for argument in arguments),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    counted: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return counted
