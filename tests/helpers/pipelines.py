"""Pipelines for tests: files read as the command reads them, run in the tests' own session."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from kafkapy.clients.producer import KafkaProducer
from kafkapy.pipeline.jobs.job_runner import JobRunner
from kafkapy.pipeline.jobs.pipeline_config import PipelineConfig, Trigger, TriggerKind
from kafkapy.pipeline.jobs.pipeline_file import PipelineFile
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress, QueryRun
from kafkapy.testing import BrokerHandle
from kafkapy.utils.stop_request import StopRequest

EXAMPLES = Path(__file__).parent.parent.parent / "etc" / "pipelines"


class CollectedProgress:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.batches: list[QueryProgress] = []

    def on_started(self, query: QueryRun) -> None:
        pass

    def on_progress(self, progress: QueryProgress) -> None:
        self.batches.append(progress)

    def on_idle(self, query: QueryRun) -> None:
        pass

    def on_terminated(self, query: QueryRun, error: str | None) -> None:
        pass

    def close(self) -> None:
        pass

    def of(self, query: str) -> list[QueryProgress]:
        return [batch for batch in self.batches if batch.query.name == query]


def load(path: Path, **environment: str) -> PipelineConfig:
    return PipelineFile(path, environment).load()


def once(config: PipelineConfig) -> PipelineConfig:
    """As with --once."""
    return replace(config, trigger=Trigger(TriggerKind.ONCE))


def run(spark: SparkSession, config: PipelineConfig) -> CollectedProgress:
    """To its end."""
    progress = CollectedProgress()
    JobRunner(config, spark, stop=StopRequest(), reporters=[progress]).run()
    return progress


def send(
    broker: BrokerHandle,
    topic: str,
    values: Iterable[bytes | None],
    *,
    timestamp_ms: int | None = None,
    settings: Mapping[str, str] = {},
) -> None:
    """Each in turn to partition 0, 1, 0, …"""
    partitions = broker.topics()[topic]
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **settings) as producer:
        for number, value in enumerate(values):
            producer.send(
                topic,
                value,
                key=b"k%d" % number,
                partition=number % partitions,
                timestamp_ms=timestamp_ms,
            )
