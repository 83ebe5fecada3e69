"""Spark for tests: nothing of it outlives the test session or is written into the checkout."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kafkapy.pipeline.spark.kafka_data_source import HAS_LIMITS
from kafkapy.pipeline.spark.spark_session_factory import spark_session
from tests.compat.tools import spark_connector_jars

NO_LIMITS = "this Spark takes no limits of a stream's batches, which 4.2 and newer do"
needs_limits = pytest.mark.skipif(not HAS_LIMITS, reason=NO_LIMITS)
_JVM_TIMEOUT_S = 30


@contextmanager
def running_spark(
    directory: Path, *, master: str = "local[2]", conf: Mapping[str, str] = {}
) -> Iterator[SparkSession]:
    """A session, and its JVM, until the end of the block; one at a time in a process."""
    directory.mkdir(parents=True, exist_ok=True)
    settings = {
        "spark.ui.enabled": "false",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraClassPath": ":".join(map(str, spark_connector_jars())),
        # Start-up counts here, peak speed does not. A JVM that is killed leaves its files behind.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        f" -Djava.io.tmpdir={directory}",
        **conf,
    }
    session = spark_session(app_name="tests", master=master, conf=settings)
    try:
        yield session
    finally:
        session.stop()
        end_jvm()


def jvm_pid() -> int:
    """Of the running session's JVM; the Python workers are below it."""
    assert SparkContext._gateway is not None
    pid: int = SparkContext._gateway.proc.pid
    return pid


def end_jvm() -> None:
    """Ends the JVM that PySpark would keep for the next session of the process."""
    gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
    assert gateway is not None
    gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    process.wait(_JVM_TIMEOUT_S)
