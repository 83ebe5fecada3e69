"""A pipeline into a table of Delta Lake, killed and resumed.

Delta Lake is made for certain releases of Spark, and not yet for the newest: what runs here is an
environment of its own with an older one (`bin/fetch-test-tools spark-delta`).
"""

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from uuid import uuid4

from kafkapy.testing import BrokerHandle
from tests.compat.tools import SparkDelta
from tests.helpers.pipelines import send
from tests.pipeline.processes.pipeline_runs import TIMEOUT_S, PipelineRuns

_ROOT = Path(__file__).parents[3]
_CONF = {
    "spark.ui.enabled": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Of a few records, 50 and 200 tasks are too many.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
}
_FILE = f"""
[pipeline]
name = "table"
checkpoint = "${{DATA}}/checkpoint"
progress_log = "${{DATA}}/progress.jsonl"

[spark.conf]
"spark.jars" = "${{JARS}}"
{"".join(f'"{key}" = "{value}"{chr(10)}' for key, value in _CONF.items())}
[[source]]
name = "records"
type = "topic"
bootstrap_servers = "${{BOOTSTRAP}}"
topics = "${{TOPIC}}"
options = {{ maxOffsetsPerTrigger = 100 }}

[[step]]
name = "rows"
sql = "SELECT partition, offset, CAST(value AS STRING) AS value FROM records"

[[sink]]
name = "table"
from = "rows"
type = "delta"
path = "${{DATA}}/table"
partition_by = ["partition"]
"""
# Prints how often the table has each value.
_COUNT = """
import json, sys
from pyspark.sql import SparkSession

path, conf = sys.argv[1:]
builder = SparkSession.builder.master("local[1]").config(map=json.loads(conf))
with builder.getOrCreate() as spark:
    rows = spark.read.format("delta").load(path).groupBy("value").count().collect()
print(json.dumps(dict(map(tuple, rows))))
"""
_BATCHES_BEFORE_A_KILL = 2
_RECORDS_A_KILL = 400  # more than those batches hold


def survive_delta_kills(
    directory: Path, broker: BrokerHandle, spark: SparkDelta, kills: int
) -> int:
    """How many records the table has, each once, after runs that were killed and one to the end."""
    topic = f"delta-{uuid4().hex[:12]}"
    broker.create_topic(topic, partitions=2)
    values = [b"value %d" % n for n in range(_RECORDS_A_KILL * (kills + 1))]
    send(broker, topic, values)
    jars = ",".join(map(str, spark.jars()))
    environment = {
        "BOOTSTRAP": broker.bootstrap_servers,
        "TOPIC": topic,
        "JARS": jars,
        "PYTHONPATH": str(_ROOT),
    }
    pipeline = PipelineRuns(directory, _FILE, environment, python=str(spark.python))

    for _ in range(kills):
        with pipeline.running() as process:
            pipeline.await_batches(process, _BATCHES_BEFORE_A_KILL)
            os.killpg(process.pid, signal.SIGKILL)
    with pipeline.running("--once") as process:
        assert process.wait(timeout=TIMEOUT_S) == 0, pipeline.said()

    found = _counted(directory, spark, {"spark.jars": jars, **_CONF})
    assert found == Counter(value.decode() for value in values)
    return len(values)


def _counted(directory: Path, spark: SparkDelta, conf: dict[str, str]) -> dict[str, int]:
    done = subprocess.run(
        [str(spark.python), "-c", _COUNT, str(directory / "table"), json.dumps(conf)],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    counted: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return counted
