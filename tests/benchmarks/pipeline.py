"""Topics and log files into Spark, beside Spark's own connector and a plain loop of kafka-python.

All read the same topic of the same broker, in turns. Imports of pyspark wait until they are needed:
bin/bench runs without it too.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord
from tests.benchmarks.broker_client import BenchmarkError, BrokerClient
from tests.benchmarks.broker_process import ROOT, BrokerProcess
from tests.benchmarks.client_load import KAFKA_PYTHON
from tests.benchmarks.clients import is_installed
from tests.benchmarks.measures import Bar, Figure, Measure, Subject
from tests.benchmarks.process_tree import peak_python_mb
from tests.benchmarks.report import print_figure, print_heading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIPELINE = "pipeline"
OFFICIAL = "Spark's own connector"
# So many that what a query costs before its first row does not count for much.
ROWS = 8_000_000
_TOPIC = "bench-pipeline"
_PARTITIONS = 4
_VALUE_BYTES = 100
# About what a producer's default batch.size holds.
_RECORDS_PER_BATCH = 125
# So many different ones that parquet cannot keep all values in a dictionary.
_BATCHES = 250
_LOOP_S = 2.0
_LOOP_TIMEOUT_S = 60

_FROM_BROKER = Bar(0.8, is_ratio=True, of="the connector")
_FROM_SEGMENTS = Bar(1.5, is_ratio=True, of="the connector")
_LOOP = Bar(10, is_ratio=True, of="the loop", subject=Subject.THEIRS)
_WORKER = Measure(
    name="pipeline-worker-rss",
    what="memory of a Python worker, at most",
    unit="MB",
    limit="",
    bars=(Bar(300, is_maximum=True),),
)


class PipelineBench:
    """One session on one filled topic. Not thread-safe."""

    def __init__(self, spark: SparkSession, *, servers: str, log_dir: Path, out: Path) -> None:
        self._servers = servers
        self.worker_peak_mb = 0.0
        self._spark = spark
        self._log_dir = log_dir
        self._out = out

    def rate(self, query: Callable[[PipelineBench, str], int], source: str) -> float:
        """Rows a second of a query; one that does not give all rows is none."""
        begun = time.monotonic()
        rows = query(self, source)
        taken_s = time.monotonic() - begun
        from tests.helpers.spark import jvm_pid

        self.worker_peak_mb = max(self.worker_peak_mb, peak_python_mb(jvm_pid()))
        if rows != ROWS:
            raise BenchmarkError(f"{PIPELINE}: {rows:,} rows of {source} instead of {ROWS:,}")
        return rows / taken_s

    def loop_rate(self, *, writes: bool) -> float:
        """Rows a second of the plain loop, doing the same."""
        return _loop_rate(self._servers, self._out.with_suffix(".parquet") if writes else None)

    def count(self, source: str) -> int:
        return self._batch(source).count()

    def to_parquet(self, source: str) -> int:
        self._batch(source).write.parquet(str(self._out))
        return self._written()

    def stream_to_parquet(self, source: str) -> int:
        stream = self._spark.readStream.format(source).options(**self._options())
        written = stream.option("startingOffsets", "earliest").load().writeStream.format("parquet")
        started = (
            written.option("path", str(self._out))
            .option("checkpointLocation", str(self._out / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        started.awaitTermination()
        return self._written()

    def _batch(self, source: str) -> DataFrame:
        reader = self._spark.read.format(source)
        if source == "kafkapy-segments":
            return reader.option("topic", _TOPIC).load(str(self._log_dir))
        return reader.options(**self._options()).load()

    def _options(self) -> Mapping[str, str]:
        return {"kafka.bootstrap.servers": self._servers, "subscribe": _TOPIC}

    def _written(self) -> int:
        from pyarrow.parquet import ParquetFile

        rows = sum(ParquetFile(file).metadata.num_rows for file in self._out.glob("*.parquet"))
        shutil.rmtree(self._out)
        return rows


@dataclass(frozen=True, slots=True)
class Query:
    """One line of the report: a query over all rows of our source; Spark's own does it too."""

    name: str
    what: str
    source: str
    run: Callable[[PipelineBench, str], int]
    bars: tuple[Bar, ...]
    loop_writes: bool = False  # the loop beside it writes parquet too

    @property
    def measure(self) -> Measure:
        return Measure(f"{PIPELINE}-{self.name}", self.what, "rows/s", OFFICIAL, self.bars)


_BROKER_BARS = (_FROM_BROKER, _LOOP)
_SEGMENT_BARS = (_FROM_SEGMENTS,)
_TOPICS, _SEGMENTS, _OFFICIAL_FORMAT = "kafkapy", "kafkapy-segments", "kafka"
QUERIES = (
    Query("count", "topic to count()", _TOPICS, PipelineBench.count, _BROKER_BARS),
    Query(
        "parquet",
        "topic to parquet",
        _TOPICS,
        PipelineBench.to_parquet,
        _BROKER_BARS,
        loop_writes=True,
    ),
    Query(
        "stream",
        "stream to parquet",
        _TOPICS,
        PipelineBench.stream_to_parquet,
        _BROKER_BARS,
        loop_writes=True,
    ),
    Query("segments-count", "segments to count()", _SEGMENTS, PipelineBench.count, _SEGMENT_BARS),
    Query(
        "segments-parquet",
        "segments to parquet",
        _SEGMENTS,
        PipelineBench.to_parquet,
        _SEGMENT_BARS,
    ),
)


def measure_pipeline(work_dir: Path, rounds: int) -> Iterator[Figure]:
    """Fills a topic, and prints each figure as soon as it is known."""
    from tests.compat.tools import spark_connector_jars
    from tests.helpers.spark import running_spark

    jars = spark_connector_jars()
    if not jars:
        print(f"{OFFICIAL} was not fetched (bin/fetch-test-tools) and is left out")
    if not is_installed(KAFKA_PYTHON):
        print(f"{KAFKA_PYTHON} is not installed (pip install kafkapy[test]) and left out")
    # The log files are read up to the high watermark that is on disk.
    broker = BrokerProcess.start(
        work_dir / "pipeline-broker", {"replica.high.watermark.checkpoint.interval.ms": "200"}
    )
    try:
        _fill(broker.port)
        # Speed counts here, and so does the just-in-time compiler.
        conf = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": ""}
        with running_spark(work_dir / "spark", conf=conf) as spark:
            bench = PipelineBench(
                spark,
                servers=f"127.0.0.1:{broker.port}",
                log_dir=work_dir / "pipeline-broker" / "logs",
                out=work_dir / "pipeline-out",
            )
            print_heading(with_other=True, limit="Spark's own", other=f"{KAFKA_PYTHON} loop")
            for query in QUERIES:
                figure = _measure(bench, query, rounds, with_official=bool(jars))
                print_figure(figure, with_other=True)
                yield figure
            memory = Figure(_WORKER, {Subject.OURS: [bench.worker_peak_mb]})
            print_figure(memory, with_other=True)
            yield memory
    finally:
        broker.stop()


def _measure(bench: PipelineBench, query: Query, rounds: int, *, with_official: bool) -> Figure:
    """Rounds of ours, Spark's own, the loop; a first one of all warms the machine up."""
    taken: dict[Subject, list[float]] = {Subject.OURS: []}
    if with_official:
        taken[Subject.LIMIT] = []
    if _LOOP in query.bars and is_installed(KAFKA_PYTHON):
        taken[Subject.THEIRS] = []
    for number in range(rounds + 1):
        for subject, rates in taken.items():
            match subject:
                case Subject.OURS:
                    rate = bench.rate(query.run, query.source)
                case Subject.LIMIT:
                    rate = bench.rate(query.run, _OFFICIAL_FORMAT)
                case _:
                    rate = bench.loop_rate(writes=query.loop_writes) if number else 0.0
            if number:
                rates.append(rate)
    return Figure(query.measure, taken)


def _loop_rate(servers: str, file: Path | None) -> float:
    """Rows a second of a plain loop that counts, or writes them to a file."""
    command = [sys.executable, "-m", "tests.benchmarks.plain_loop", servers, _TOPIC, str(_LOOP_S)]
    if file is not None:
        command.append(str(file))
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=_LOOP_TIMEOUT_S
    )
    if done.returncode != 0:
        raise BenchmarkError(f"{KAFKA_PYTHON} failed to consume:\n{done.stderr[-2000:]}")
    return float(done.stdout)


def _fill(port: int) -> None:
    batches = list(_batches())
    with BrokerClient("127.0.0.1", port) as client:
        client.create_topic(_TOPIC, _PARTITIONS, batches[0], {})
        # create_topic has put one batch into each partition.
        for number in range(_PARTITIONS, ROWS // _RECORDS_PER_BATCH):
            client.append(_TOPIC, number % _PARTITIONS, batches[number % _BATCHES])


def _batches() -> Iterator[bytes]:
    chance = random.Random(1)
    timestamp_ms = int(time.time() * 1000)
    for _ in range(_BATCHES):
        records = [
            SimpleRecord(timestamp_ms + n, b"key-%d" % n, chance.randbytes(_VALUE_BYTES))
            for n in range(_RECORDS_PER_BATCH)
        ]
        yield bytes(MemoryRecords.with_records(*records).buffer)
