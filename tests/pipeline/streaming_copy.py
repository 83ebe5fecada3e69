"""A job that copies a topic to another topic, and to Parquet too, and is killed again and again.

As a program (its argument is a StreamingCopy in JSON) it is the driver that is killed.
"""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from kafkapy.clients.producer import KafkaProducer
from kafkapy.testing.broker_handle import BrokerHandle
from kafkapy.testing.topic_reader import IsolationLevel
from tests.helpers.ended_transactions import await_ended_transactions
from tests.helpers.spark import running_spark
from tests.helpers.waiting import wait_until
from tests.pipeline.crashing_sink import CRASH_POINTS, CrashingDataSource

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 3
ROWS_PER_BATCH = 600
ROWS_PER_LIFE = 3 * ROWS_PER_BATCH
RANDOM = "random"
_START_TIMEOUT_S = 300  # of a busy machine
_RANDOM_LIFE_S = 8.0
# Spark waits ten seconds for a Python process to start, which a busy machine may not manage.
_TOO_SLOW = "Python worker failed to connect back"


@dataclass(frozen=True, slots=True)
class StreamingCopy:
    """From topic `source` to topic `sink`, exactly once, and so to Parquet if that is asked for."""

    bootstrap_servers: str
    source: str
    sink: str
    directory: str
    with_parquet: bool
    crash_at: str = ""

    @property
    def marker(self) -> Path:
        return Path(self.directory, "marker")

    @property
    def parquet(self) -> str:
        return str(Path(self.directory, "parquet"))

    def run(self, spark: SparkSession, *, until_done: bool) -> None:
        """Until all that is there is copied, or for ever."""
        queries = [self._to_topic(spark, until_done)]
        if self.with_parquet:
            queries.append(self._to_parquet(spark, until_done))
        if self.crash_at == RANDOM:
            self.marker.write_text(RANDOM)
        for query in queries:
            query.awaitTermination()

    def _to_topic(self, spark: SparkSession, until_done: bool) -> StreamingQuery:
        writer = (
            self._rows(spark)
            .writeStream.format("kafkapy-crashing" if self.crash_at else "kafkapy")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("topic", self.sink)
            .option("exactlyOnce", "true")
            .option("checkpointLocation", str(Path(self.directory, "to-topic")))
        )
        if self.crash_at:
            writer = writer.option("crashAt", self.crash_at).option("crashMarker", str(self.marker))
        return writer.trigger(**_trigger(until_done)).start()

    def _to_parquet(self, spark: SparkSession, until_done: bool) -> StreamingQuery:
        return (
            self._rows(spark)
            .coalesce(1)
            .writeStream.format("parquet")
            .option("path", self.parquet)
            .option("checkpointLocation", str(Path(self.directory, "to-parquet")))
            .trigger(**_trigger(until_done))
            .start()
        )

    def _rows(self, spark: SparkSession) -> DataFrame:
        return (
            spark.readStream.format("kafkapy")
            .option("kafka.bootstrap.servers", self.bootstrap_servers)
            .option("subscribe", self.source)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(ROWS_PER_BATCH))
            .load()
            .select("key", "value")
        )


def _trigger(until_done: bool) -> dict[str, object]:
    return {"availableNow": True} if until_done else {"processingTime": "0 seconds"}


class KilledCopy:
    """A copy whose driver is killed, with the input that it has had so far."""

    def __init__(self, broker: BrokerHandle, directory: Path, *, with_parquet: bool) -> None:
        self._broker = broker
        name = f"kills-{os.urandom(4).hex()}"
        self._copy = StreamingCopy(
            broker.bootstrap_servers, f"{name}-in", f"{name}-out", str(directory), with_parquet
        )
        for topic in (self._copy.source, self._copy.sink):
            broker.create_topic(topic, partitions=PARTITIONS)
        self._output = directory / "driver.txt"
        self.rows = 0

    def feed(self, rows: int = ROWS_PER_LIFE) -> None:
        with KafkaProducer(bootstrap_servers=self._broker.bootstrap_servers) as producer:
            for number in range(self.rows, self.rows + rows):
                producer.send(self._copy.source, b"%d" % number, partition=number % PARTITIONS)
        self.rows += rows

    def live_and_die(self, crash_at: str, rng: random.Random) -> None:
        """One life of the driver: until it has come to that point, or for a random time."""
        self._copy.marker.unlink(missing_ok=True)
        while not self._lived(crash_at, rng):
            assert _TOO_SLOW in self._output.read_text(), f"the driver ended: see {self._output}"
            self._output.unlink()

    def _lived(self, crash_at: str, rng: random.Random) -> bool:
        """False when the driver ended before it was killed."""
        copy = dataclasses.replace(self._copy, crash_at=crash_at)
        with _driver(copy, self._output) as driver:
            wait_until(
                lambda: copy.marker.exists() or driver.poll() is not None,
                _START_TIMEOUT_S,
                message=f"the driver did not come to {crash_at}",
                pause=0.1,
            )
            if crash_at == RANDOM:
                time.sleep(rng.uniform(0, _RANDOM_LIFE_S))
            return copy.marker.exists() and driver.poll() is None

    def finish(self, spark: SparkSession) -> None:
        """Copy the rest, and check that each row of the input is in the outputs once."""
        self._copy.run(spark, until_done=True)
        await_ended_transactions(self._broker.bootstrap_servers)
        records = self._broker.records(self._copy.sink, isolation=IsolationLevel.READ_COMMITTED)
        self._check("the topic", (record.value or b"" for record in records))
        if self._copy.with_parquet:
            rows = spark.read.parquet(self._copy.parquet).collect()
            self._check("Parquet", (bytes(row.value) for row in rows))

    def _check(self, where: str, values: Iterable[bytes]) -> None:
        found = Counter(map(int, values))
        lost = self.rows - len(found)
        doubled = found.total() - len(found)
        assert (lost, doubled) == (0, 0), f"{where}: {lost} lost, {doubled} doubled"


def survive_driver_kills(broker: BrokerHandle, directory: Path, kills: int) -> KilledCopy:
    """Every second kill at a chosen point of the sink's commit, the others anywhere."""
    rng = random.Random(time.time_ns())
    killed = KilledCopy(broker, directory, with_parquet=True)
    for kill in range(kills):
        killed.feed()
        point = RANDOM if kill % 2 else CRASH_POINTS[kill // 2 % len(CRASH_POINTS)]
        killed.live_and_die(point, rng)
    return killed


@contextmanager
def _driver(copy: StreamingCopy, output_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Killed at the end, with its JVM; the workers of that end by themselves."""
    with open(output_path, "ab") as output:
        driver = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.pipeline.streaming_copy",
                json.dumps(dataclasses.asdict(copy)),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield driver
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()


def main() -> None:
    copy = StreamingCopy(**json.loads(sys.argv[1]))
    with (
        tempfile.TemporaryDirectory(dir=copy.directory) as scratch,
        running_spark(Path(scratch)) as spark,
    ):
        spark.dataSource.register(CrashingDataSource)
        copy.run(spark, until_done=False)


if __name__ == "__main__":
    main()
