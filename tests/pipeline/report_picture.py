"""Draws docs/images/pipeline-report.svg from a real run.

    python -m tests.pipeline.report_picture docs/images/pipeline-report.svg

A topic with a backlog is archived to parquet while records come in, faster at times; half-way the
query is stopped and started again. It takes two minutes; Spark is warm before they begin.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from kafkapy.clients.producer.kafka_producer import KafkaProducer
from kafkapy.pipeline.jobs.progress.progress_listener import ProgressListener
from kafkapy.pipeline.jobs.progress.progress_log import ProgressLog
from kafkapy.pipeline.jobs.report.report_command import add_report_arguments, run_report
from kafkapy.testing.broker_process import BrokerProcess
from kafkapy.utils.time import SystemTime
from tests.helpers.spark import running_spark

_TOPIC = "orders"
_PARTITIONS = 8
_BACKLOG = 150_000
_ROWS_A_SECOND = 2_000
_BURST_ROWS_A_SECOND = 6_000
_ROWS_A_BATCH = 15_000
_RUN_S = 50
_DOWN_S = 6


class _Feeder(threading.Thread):
    """Sends records until told to stop, more of them to some partitions than to others."""

    def __init__(self, producer: KafkaProducer) -> None:
        super().__init__(name="feeder")
        self._producer = producer
        self._random = random.Random(5)
        self._stopped = threading.Event()

    def run(self) -> None:
        second = 0
        while not self._stopped.wait(1.0):
            second += 1
            self.send(_BURST_ROWS_A_SECOND if second % 30 < 8 else _ROWS_A_SECOND)

    def send(self, count: int) -> None:
        for _ in range(count):
            partition = int(_PARTITIONS * self._random.random() ** 1.3)
            value = b"%096d" % self._random.randrange(10**9)
            self._producer.send(_TOPIC, value, partition=partition)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def archive_for(seconds: float, spark: SparkSession, servers: str, directory: Path) -> None:
    """One run of the query; the next goes on where it ended."""
    listener = ProgressListener([ProgressLog(directory / "progress.jsonl", SystemTime())])
    spark.streams.addListener(listener)
    options = source_options(servers) | {"maxOffsetsPerTrigger": str(_ROWS_A_BATCH)}
    source = spark.readStream.format("kafkapy").options(**options)
    rows = source.load().observe("sink", f.count(f.lit(1)).alias("rows_out"))
    query = (
        rows.writeStream.format("parquet")
        .queryName("archive-orders")
        .option("path", str(directory / "archive"))
        .option("checkpointLocation", str(directory / "checkpoint"))
        .start()
    )
    query.awaitTermination(timeout=round(seconds))
    query.stop()
    listener.close()
    spark.streams.removeListener(listener)


def source_options(servers: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": servers,
        "subscribe": _TOPIC,
        "startingOffsets": "earliest",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    output: Path = parser.parse_args().output
    with tempfile.TemporaryDirectory() as name, BrokerProcess() as broker:
        directory = Path(name)
        broker.create_topic(_TOPIC, partitions=_PARTITIONS)
        with (
            KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=20) as producer,
            running_spark(directory) as spark,
        ):
            feeder = _Feeder(producer)
            feeder.send(_BACKLOG)
            rows = spark.read.format("kafkapy").options(**source_options(broker.bootstrap_servers))
            rows.load().write.parquet(str(directory / "warm-up"))
            feeder.start()
            try:
                archive_for(_RUN_S, spark, broker.bootstrap_servers, directory)
                time.sleep(_DOWN_S)
                archive_for(_RUN_S, spark, broker.bootstrap_servers, directory)
            finally:
                feeder.stop()
        report = argparse.ArgumentParser()
        add_report_arguments(report)
        log = str(directory / "progress.jsonl")
        run_report(report.parse_args([log, "--svg", "-o", str(output)]))


if __name__ == "__main__":
    main()
