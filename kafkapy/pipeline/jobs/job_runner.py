"""Runs a pipeline: a Spark session, its queries, their end."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kafkapy.pipeline.jobs.batch_writes import BatchWrites
from kafkapy.pipeline.jobs.checkpoint_directory import CheckpointDirectory
from kafkapy.pipeline.jobs.failure_cause import failure_cause
from kafkapy.pipeline.jobs.output import Output
from kafkapy.pipeline.jobs.pipeline_config import PipelineConfig
from kafkapy.pipeline.jobs.pipeline_frames import PipelineFrames
from kafkapy.pipeline.jobs.pipeline_outputs import PipelineOutputs
from kafkapy.pipeline.jobs.pipeline_summary import summary
from kafkapy.pipeline.jobs.progress.progress_listener import ProgressListener
from kafkapy.pipeline.jobs.progress.progress_reporter import ProgressReporter
from kafkapy.pipeline.jobs.topic_directory import TopicDirectory
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.spark.active_session import active_session
from kafkapy.pipeline.spark.registration import register_data_sources
from kafkapy.utils.stop_request import StopRequest
from kafkapy.utils.time import SystemTime, Time

LATEST = "latest"
_POLL_S = 0.2
_STOP_POLL_MS = 50
# The state of a query, in Spark's words, until its sources are there.
_INITIALIZING = "Initializing sources"

log = logging.getLogger(__name__)


class JobRunner:
    """One run of a pipeline in a Spark session. For one thread, which `run` blocks.

    Every output is a query of its own. The first one that fails ends the run, and so does a request
    to stop: the others get the time of their current batch, up to the config's limit. What a batch
    had not committed by then is done again by the next run, from the checkpoints. Whether the
    topics are there is for the caller to ask, before it has a session: TopicDirectory.check.
    """

    def __init__(
        self,
        config: PipelineConfig,
        spark: SparkSession,
        *,
        stop: StopRequest,
        reporters: Sequence[ProgressReporter] = (),
        say: Callable[[str], None] = lambda line: None,
        time: Time | None = None,
    ) -> None:
        """The session is used as it is but for its temporary views and the names of its queries,
        which are the run's own; `say` is told of what is not a query's progress.
        """
        # constant after construction
        self._config = config
        self._spark = spark.newSession()
        self._stop = stop
        self._reporters = reporters
        self._say = say
        self._time = time or SystemTime()
        self._topics = TopicDirectory(config)
        self._checkpoint = CheckpointDirectory(config.checkpoint)
        register_data_sources(self._spark)
        for name, value in config.spark.conf.items():
            if spark.conf.isModifiable(name):
                self._spark.conf.set(name, value)

    def validate(self) -> list[str]:
        """Builds everything and runs nothing; what would run, line by line."""
        frames = PipelineFrames(self._spark, self._config, {})
        outputs = PipelineOutputs(self._spark, self._config).build(frames)
        return summary(self._config, outputs)

    def run(self) -> None:
        """Until all is done or it is told to stop. PipelineError names the query and its cause."""
        with self._listening(), self._checkpoint:
            frames = PipelineFrames(self._spark, self._config, self._starting_offsets())
            outputs = PipelineOutputs(self._spark, self._config).build(frames)
            batches = [output for output in outputs if not output.is_streaming]
            writes = BatchWrites(self._spark, batches, say=self._say, time=self._time)
            queries: list[StreamingQuery] = []
            try:
                for output in outputs:
                    if output.is_streaming and not self._stop.is_asked(within_s=0):
                        queries.append(self._start(output))
                writes.start()
                self._wait(queries, writes)
            finally:
                writes.cancel()
                self._stop_all(queries)

    def _starting_offsets(self) -> dict[str, str]:
        """`latest` is a different place for each query that asks; it is asked once, at the first
        run, so that a record is not missed by one query and taken by another.
        """
        found = {}
        for source in self._config.topic_sources():
            if source.starting_offsets.strip().lower() != LATEST:
                continue
            kept = self._checkpoint.starting_offsets(self._spark, source.name)
            if kept is None:
                kept = self._topics.latest_offsets(source)
                self._checkpoint.keep_starting_offsets(self._spark, source.name, kept)
            else:
                kept = self._topics.with_new_partitions(source, kept)
            found[source.name] = json.dumps(kept)
        return found

    @contextmanager
    def _listening(self) -> Iterator[None]:
        listener = ProgressListener(self._reporters)
        self._spark.streams.addListener(listener)
        try:
            yield
        finally:
            listener.close()
            self._spark.streams.removeListener(listener)

    def _start(self, output: Output) -> StreamingQuery:
        try:
            with active_session(self._spark):
                query = output.start(self._config.trigger, self._checkpoint.of_query(output.name))
        except (PySparkException, Py4JError) as e:
            # What Java raises that is none of Spark's own: a library made for another Spark, say.
            raise _failed(output.name, e) from e
        # One after another: each starts a Python process for its source, which has to be there
        # within ten seconds, and a small machine that starts many at once is slower than that.
        while query.isActive and query.status["message"] == _INITIALIZING:
            if self._stop.is_asked(within_s=_POLL_S / 4):
                break
        return query

    def _wait(self, queries: Sequence[StreamingQuery], writes: BatchWrites) -> None:
        while True:
            is_running = not writes.is_done
            for query in queries:
                if query.isActive:
                    is_running = True
                elif (error := query.exception()) is not None:
                    raise _failed(query.name, error)
            writes.raise_failure()
            if not is_running or self._stop.is_asked(within_s=_POLL_S):
                return

    def _stop_all(self, queries: Sequence[StreamingQuery]) -> None:
        """Each may finish the batch that it is at, all together within the limit."""
        deadline_ms = self._time.hi_res_clock_ms() + self._config.stop_timeout_s * 1000
        batches = {query.runId: _last_batch(query) for query in queries}
        while self._time.hi_res_clock_ms() < deadline_ms and any(
            _is_at_work(query, batches[query.runId]) for query in queries
        ):
            self._time.sleep(_STOP_POLL_MS)
        for query in queries:
            try:
                query.stop()
            except PySparkException as e:
                log.warning("Query %s did not stop in order: %s", query.name, failure_cause(e))


def _failed(name: str | None, error: BaseException) -> PipelineError:
    return PipelineError(f"query {name} failed: {failure_cause(error)}")


def _last_batch(query: StreamingQuery) -> int:
    progress = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def _is_at_work(query: StreamingQuery, batch: int) -> bool:
    """Whether it is still in the batch that it was in; one that has begun since can be dropped."""
    if not query.isActive or not query.status["isTriggerActive"]:
        return False
    return _last_batch(query) == batch
