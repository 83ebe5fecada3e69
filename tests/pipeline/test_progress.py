"""What Spark says of real queries arrives at the reporters."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kafkapy.clients.producer.kafka_producer import KafkaProducer
from kafkapy.pipeline.jobs.progress.pipeline_metrics import PipelineMetrics
from kafkapy.pipeline.jobs.progress.progress_listener import ProgressListener
from kafkapy.pipeline.jobs.progress.progress_log import (
    ProgressLog,
    QueryStarted,
    QueryTerminated,
    read_progress_log,
)
from kafkapy.pipeline.jobs.progress.progress_reporter import ProgressReporter
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress, QueryRun
from kafkapy.pipeline.jobs.progress.terminal_view import TerminalView
from kafkapy.pipeline.jobs.report.query_history import query_histories
from kafkapy.pipeline.jobs.report.query_summary import QuerySummary
from kafkapy.testing.broker_process import BrokerProcess
from kafkapy.utils.time import SystemTime
from tests.helpers.spark import needs_limits

RECORDS = 200


class _Broken(TerminalView):
    def on_progress(self, progress: QueryProgress) -> None:
        raise OSError("no space left")


@contextmanager
def listening(spark: SparkSession, *reporters: ProgressReporter) -> Iterator[None]:
    listener = ProgressListener(reporters)
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        listener.close()
        spark.streams.removeListener(listener)


@needs_limits
def test_each_batch_is_logged_measured_and_shown_with_its_lag(
    spark: SparkSession,
    spark_broker: BrokerProcess,
    topic: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fill(spark_broker, topic)
    log_path, shown = tmp_path / "progress.jsonl", io.StringIO()
    metrics = PipelineMetrics()
    records = (
        spark.readStream.format("kafkapy")
        .option("kafka.bootstrap.servers", spark_broker.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "100")
        .load()
        .observe("sink", f.count(f.lit(1)).alias("rows_out"))
        .observe("decoding", f.count_if(f.col("offset") < 5).alias("dead_letters"))
    )

    with listening(
        spark, _Broken(shown), ProgressLog(log_path, SystemTime()), metrics, TerminalView(shown)
    ):
        writer = records.writeStream.format("parquet").queryName("archive")
        options = {"path": str(tmp_path / "out"), "checkpointLocation": str(tmp_path / "state")}
        query = writer.options(**options).trigger(availableNow=True).start()
        query.awaitTermination()

    events = list(read_progress_log(log_path))
    run = QueryRun("archive", query.id, query.runId)
    batches = [event for event in events if isinstance(event, QueryProgress) and event.rows_in]
    assert isinstance(events[0], QueryStarted)
    assert isinstance(events[-1], QueryTerminated)
    assert events[-1].error is None
    assert {event.query for event in events} == {run}
    assert [batch.rows_in for batch in batches] == [100, 100]
    assert [batch.rows_out for batch in batches] == [100, 100]
    assert [batch.lag for batch in batches] == [100, 0]
    assert {(p.topic, p.partition) for p in batches[-1].partitions} == {(topic, 0), (topic, 1)}
    assert all("addBatch" in batch.phases_ms and batch.duration_ms > 0 for batch in batches)

    [history] = query_histories(events)
    summary = QuerySummary.of(history)
    assert (summary.rows_in, summary.rows_out, summary.dead_letters) == (RECORDS, RECORDS, 10)
    assert summary.last_lag == 0

    counted = metrics.registry.get_sample_value
    assert counted("kafkapy_pipeline_rows_total", {"query": "archive"}) == RECORDS
    assert counted("kafkapy_pipeline_query_active", {"query": "archive"}) == 0
    assert "archive batch 0: 100 rows in, 100 out" in shown.getvalue()
    assert "_Broken failed: no space left" in caplog.text


def test_a_query_that_fails_is_reported_with_its_cause(spark: SparkSession, tmp_path: Path) -> None:
    def refuse(rows: DataFrame, batch_id: int) -> None:
        raise RuntimeError("this batch is bad")

    log_path = tmp_path / "progress.jsonl"
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()

    with listening(spark, ProgressLog(log_path, SystemTime())):
        writer = rate.writeStream.foreachBatch(refuse).queryName("failing")
        query = writer.option("checkpointLocation", str(tmp_path / "state")).start()
        with pytest.raises(StreamingQueryException):
            query.awaitTermination()

    last = list(read_progress_log(log_path))[-1]
    assert isinstance(last, QueryTerminated)
    assert last.error == "RuntimeError: this batch is bad"


def fill(broker: BrokerProcess, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(RECORDS):
            producer.send(topic, b"%d" % number, partition=number % 2)
