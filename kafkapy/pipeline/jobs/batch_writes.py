"""What a pipeline writes once, from sources that are no streams."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from uuid import uuid4

from pyspark import InheritableThread
from pyspark.sql import SparkSession

from kafkapy.pipeline.jobs.failure_cause import failure_cause
from kafkapy.pipeline.jobs.output import Output
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.spark.active_session import active_session
from kafkapy.utils.time import Time

_CANCEL_POLL_S = 0.5


class BatchWrites:
    """Writes outputs one after another in a thread of its own, so that somebody can wait for them
    and for a request to stop. For one thread, which starts it and asks.
    """

    def __init__(
        self,
        spark: SparkSession,
        outputs: Sequence[Output],
        *,
        say: Callable[[str], None],
        time: Time,
    ) -> None:
        # constant after construction
        self._spark = spark
        self._outputs = outputs
        self._say = say
        self._time = time
        self._job_group = f"kafka-pipeline-{uuid4()}"
        self._thread = InheritableThread(target=self._run, name="pipeline-batch-writes")
        # written by the thread, read once it has ended
        self._failure: BaseException | None = None
        self._current = ""
        self._is_started = False
        self._is_cancelled = threading.Event()

    @property
    def is_done(self) -> bool:
        return self._is_started and not self._thread.is_alive()

    def start(self) -> None:
        self._is_started = True
        self._thread.start()

    def raise_failure(self) -> None:
        """PipelineError with the output and the cause, if one has failed."""
        if self.is_done and self._failure is not None:
            cause = failure_cause(self._failure)
            raise PipelineError(f"{self._current} failed: {cause}") from self._failure

    def cancel(self) -> None:
        """Ends the one that is being written, if one is; what it has written so far is not seen."""
        self._is_cancelled.set()
        while self._is_started and self._thread.is_alive():
            # Again and again: between two jobs of a write there is none to cancel.
            self._spark.sparkContext.cancelJobGroup(self._job_group)
            self._thread.join(_CANCEL_POLL_S)

    def _run(self) -> None:
        with active_session(self._spark):
            self._write_all()

    def _write_all(self) -> None:
        group = self._job_group
        self._spark.sparkContext.setJobGroup(group, "kafka-pipeline", interruptOnCancel=True)
        for output in self._outputs:
            if self._is_cancelled.is_set():
                return
            self._current = output.name
            begun_ms = self._time.hi_res_clock_ms()
            try:
                rows = output.write()
            except Exception as e:
                self._failure = e
                return
            seconds = (self._time.hi_res_clock_ms() - begun_ms) / 1000
            self._say(f"{output.name}: {rows} rows in {seconds:.1f} s")
