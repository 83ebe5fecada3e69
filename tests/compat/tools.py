"""Where the foreign clients are, as bin/fetch-test-tools left them, and how they are run.

A `require_*` function returns what the client needs or skips the calling test with the reason.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

KAFKA_VERSION = "3.9.1"
KAFKAJS_VERSION = "2.2.4"
SPARK_KAFKA_VERSION = "4.2.0"
# Of Spark, by the library of tables that is made for it.
SPARK_WITH_VERSIONS = {"delta": "4.2.0", "iceberg": "4.1.4"}
TIMEOUT_S = 60

_JAVA_SOURCES = Path(__file__).parent / "java"
_PROGRAMS = "programs.jar"
_ARCHIVE = "programs.jsa"
# Start-up and a small footprint count here, peak speed does not.
_JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
_NODE_SOURCES = Path(__file__).parent / "js"

# Where the command of a name is in Kafka 3.9's jars.
MAIN_CLASSES = {
    "kafka-acls": "kafka.admin.AclCommand",
    "kafka-broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "kafka.tools.ConsoleProducer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance",
    "kafka-delegation-tokens": "org.apache.kafka.tools.DelegationTokenCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-dump-log": "kafka.tools.DumpLogSegments",
    "kafka-e2e-latency": "org.apache.kafka.tools.EndToEndLatency",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-replica-verification": "org.apache.kafka.tools.ReplicaVerificationTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}


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


def kafka_jars() -> Path:
    """Where they are if they were fetched."""
    return cache_dir() / f"kafka-{KAFKA_VERSION}" / "jars"


def require_jars() -> Path:
    jars = kafka_jars()
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


@dataclass(frozen=True, slots=True)
class SparkWithLibrary:
    """An environment with a library of tables, and a Spark that it is made for."""

    library: str
    home: Path

    @property
    def python(self) -> Path:
        return self.home / "venv" / "bin" / "python"

    def jars(self) -> list[Path]:
        """The library."""
        return sorted((self.home / self.library / "jars").glob("*.jar"))


def require_spark_with(library: str) -> SparkWithLibrary:
    """With one of SPARK_WITH_VERSIONS."""
    name = f"spark-{library}"
    home = cache_dir() / f"{name}-{SPARK_WITH_VERSIONS[library]}"
    if not home.is_dir():
        _skip(name, how=f"bin/fetch-test-tools {name}")
    return SparkWithLibrary(library, home)


def _skip(tool: str, *, how: str = "bin/fetch-test-tools") -> None:
    reason = cache_dir() / f"{tool}.unavailable"
    if reason.exists():
        pytest.skip(reason.read_text().strip())
    pytest.skip(f"{tool}: not fetched, run {how}")


def java_command(
    main_class: str, *arguments: str, heap: str = "256m", options: Sequence[str] = ()
) -> list[str]:
    """A JVM on Kafka's jars and on the classes of tests/compat/java."""
    jars = require_jars()
    programs = _programs(jars)
    return [
        "java",
        *_JVM_OPTIONS,
        # An archive that does not suit this JVM is left alone without a word.
        *(f"-XX:SharedArchiveFile={programs / _ARCHIVE}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"),
        f"-Xmx{heap}",
        f"-Djava.io.tmpdir={tempfile.gettempdir()}",
        *options,
        *_class_path(programs, jars),
        main_class,
        *arguments,
    ]


def _class_path(programs: Path, jars: Path) -> list[str]:
    logging = f"-Dlog4j.configuration=file:{_JAVA_SOURCES / 'log4j.properties'}"
    return [logging, "-cp", f"{programs / _PROGRAMS}:{jars}/*"]


@cache
def _programs(jars: Path) -> Path:
    """A directory of the cache, named after what it is made from.

    It holds the compiled java/*.java in a jar, and what a JVM has loaded after a rehearsal of them,
    which halves the cost of starting one.
    """
    sources = sorted(_JAVA_SOURCES.glob("*.java"))
    java = Path(shutil.which("java") or "").resolve()
    digest = hashlib.sha256(f"{java} {java.stat().st_mtime_ns}".encode())
    for source in sources:
        digest.update(source.read_bytes())
    programs = cache_dir() / f"programs-{KAFKA_VERSION}-{digest.hexdigest()[:16]}"
    with (cache_dir() / "programs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not programs.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_dir()) as work:
                _compile(sources, jars, Path(work))
                # The archive is of classes at their final place.
                os.rename(f"{work}/programs", programs)
                _rehearse(programs, jars, Path(work))
    return programs


def _compile(sources: Sequence[Path], jars: Path, work: Path) -> None:
    run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", f"{work}/classes", *map(str, sources)])
    (work / "programs").mkdir()
    run(["jar", "cf", f"{work}/programs/{_PROGRAMS}", "-C", f"{work}/classes", "."])


def _rehearse(programs: Path, jars: Path, work: Path) -> None:
    archive = programs / _ARCHIVE
    record = [*_JVM_OPTIONS, f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable"]
    command = ["java", *record, *_class_path(programs, jars), "Rehearsal", str(work)]
    run([*command, *MAIN_CLASSES.values()])


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
