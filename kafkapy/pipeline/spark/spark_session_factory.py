"""A Spark session with Java found, its Python workers the same as this one, and our sources in."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from kafkapy.pipeline.spark.java_runtime import find_java
from kafkapy.pipeline.spark.python_workers import worker_python
from kafkapy.pipeline.spark.registration import register_data_sources

_LOGGING = Path(__file__).with_name("log4j2.properties")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Set by spark-submit, which has then started the driver's JVM and decided on the master.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"


def spark_session(
    *, app_name: str, master: str = "local[2]", conf: Mapping[str, str] = {}
) -> SparkSession:
    """The process's session, made if there is none; under spark-submit its --master stands.

    Sets environment variables of this process, which is how Spark is told about Java and Python.
    What the user has set is left alone.
    """
    builder: SparkSession.Builder = SparkSession.builder.appName(app_name)
    if _SUBMITTED not in os.environ:
        os.environ.update(_launch_environment(os.environ, master))
        builder = builder.master(master)
        conf = _quiet(conf)
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    register_data_sources(session)
    return session


def _launch_environment(environment: Mapping[str, str], master: str) -> dict[str, str]:
    launch = find_java(environment).applied_to(environment)
    # Else Spark's workers are the first python3 of the PATH, which need not have kafkapy.
    is_local = master.startswith("local")
    python = str(worker_python(environment)) if is_local else sys.executable
    launch.setdefault("PYSPARK_PYTHON", python)
    if is_local:
        # Else Spark asks for the machine's name and address, and warns when it is a loopback one.
        launch.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return launch


def _quiet(conf: Mapping[str, str]) -> dict[str, str]:
    logging = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    return {
        "spark.ui.showConsoleProgress": "false",
        **conf,
        # The last of several says which file it is: a user's own comes after ours.
        _JAVA_OPTIONS: f"{logging} {conf.get(_JAVA_OPTIONS, '')}".rstrip(),
    }
