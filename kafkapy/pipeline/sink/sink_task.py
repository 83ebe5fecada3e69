"""Which part of which work a Python worker of Spark is doing."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext

from kafkapy.pipeline.pipeline_errors import PipelineError

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class SinkTask:
    """One attempt of a task that writes."""

    partition: int
    attempt: int = 0
    query_id: str | None = None  # of a stream: the same as long as its checkpoint lives
    batch_id: int | None = None  # of a stream: a batch that is tried again keeps it

    @staticmethod
    def current() -> SinkTask:
        """Raises PipelineError outside of a task."""
        context = TaskContext.get()
        if context is None:
            raise PipelineError("rows are written by Spark's tasks, and this is none")
        batch_id = context.getLocalProperty(_BATCH_ID)
        return SinkTask(
            partition=context.partitionId(),
            attempt=context.attemptNumber(),
            query_id=context.getLocalProperty(_QUERY_ID),
            batch_id=None if batch_id is None else int(batch_id),
        )
