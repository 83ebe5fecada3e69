"""Where the foreign clients are, as bin/fetch-test-tools left them, and how they are run.

A `require_*` function returns what the client needs or skips the calling test with the reason.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

KAFKA_VERSION = "3.9.1"
KAFKAJS_VERSION = "2.2.4"
SPARK_KAFKA_VERSION = "4.2.0"
TIMEOUT_S = 60

_JAVA_SOURCES = Path(__file__).parent / "java"
_NODE_SOURCES = Path(__file__).parent / "js"


def cache_dir() -> Path:
    """As bin/fetch-test-tools computes it."""
    if explicit := os.environ.get("KAFKAPY_TEST_CACHE"):
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkapy"


def require_kcat() -> str:
    found = shutil.which("kcat")
    if found is None:
        _skip("kcat")
    return found


def require_jars() -> Path:
    jars = cache_dir() / f"kafka-{KAFKA_VERSION}" / "jars"
    if not jars.is_dir() or shutil.which("java") is None:
        _skip("kafka")
    return jars


def require_kafkajs() -> Path:
    modules = cache_dir() / f"kafkajs-{KAFKAJS_VERSION}" / "node_modules"
    if not modules.is_dir() or shutil.which("node") is None:
        _skip("kafkajs")
    return modules


def spark_connector_jars() -> list[Path]:
    """Spark's own connector for Kafka; none if it was not fetched."""
    return sorted((cache_dir() / f"spark-kafka-{SPARK_KAFKA_VERSION}" / "jars").glob("*.jar"))


def require_spark_connector() -> list[Path]:
    jars = spark_connector_jars()
    if not jars:
        _skip("spark-kafka")
    return jars


def _skip(tool: str) -> None:
    reason = cache_dir() / f"{tool}.unavailable"
    if reason.exists():
        pytest.skip(reason.read_text().strip())
    pytest.skip(f"{tool}: not fetched, run bin/fetch-test-tools")


def java_command(
    main_class: str, *arguments: str, heap: str = "256m", options: Sequence[str] = ()
) -> list[str]:
    """A JVM on Kafka's jars and on the classes of tests/compat/java."""
    jars = require_jars()
    return [
        "java",
        # Start-up and a small footprint count here, peak speed does not.
        *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", f"-Xmx{heap}"),
        *options,
        f"-Dlog4j.configuration=file:{_JAVA_SOURCES / 'log4j.properties'}",
        *("-cp", f"{_compiled_classes(jars)}:{jars}/*", main_class),
        *arguments,
    ]


def _compiled_classes(jars: Path) -> Path:
    """The compiled java/*.java, in the cache under the hash of their text."""
    sources = sorted(_JAVA_SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    classes = cache_dir() / f"classes-{KAFKA_VERSION}-{digest}"
    if not classes.is_dir():
        with tempfile.TemporaryDirectory(dir=cache_dir()) as work:
            command = ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", f"{work}/classes"]
            run([*command, *map(str, sources)])
            # Two test workers may race here; either's result is the same.
            if not classes.is_dir():
                os.rename(f"{work}/classes", classes)
    return classes


def run_kafka_tool(main_class: str, *arguments: str, stdin: str | None = None) -> str:
    """What one of Kafka's command-line tools printed on standard output."""
    return run(java_command(main_class, *arguments), stdin=stdin)


def run(command: Sequence[str], *, stdin: str | None = None) -> str:
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{command} exited with {done.returncode}: {done.stderr}"
    return done.stdout


def node_command(script: str) -> tuple[list[str], dict[str, str]]:
    """The command for a script of tests/compat/js and the environment that finds kafkajs."""
    modules = require_kafkajs()
    environment = {**os.environ, "NODE_PATH": str(modules), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
    return ["node", str(_NODE_SOURCES / script)], environment
