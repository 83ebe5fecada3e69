"""df.writeStream.format("kafkapy")."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafkapy.common.errors import KafkaError
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.sink.batch_commit import BatchCommit
from kafkapy.pipeline.sink.kafka_sink_options import SinkOptions
from kafkapy.pipeline.sink.sink_commit_message import SinkCommitMessage, commit_messages
from kafkapy.pipeline.sink.sink_schema import SinkSchema
from kafkapy.pipeline.sink.sink_task import SinkTask
from kafkapy.pipeline.sink.task_writer import TaskWriter

logger = logging.getLogger(__name__)


class KafkaStreamWriter(DataSourceStreamArrowWriter):
    """Writes the micro-batches of a stream; with exactlyOnce each once, whatever is tried again.

    Made on the driver, where wrong columns are found, and again for each commit; `write` runs in
    tasks. Nothing is kept in it: what a batch has come to is known to its messages and to the
    brokers (batch_commit.py says how).

    Ports: org.apache.spark.sql.kafka010.KafkaStreamingWrite
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        """OptionError or SchemaError for what cannot be written."""
        # constant after construction
        self._options = options
        self._schema = SinkSchema.of(schema, options.topic)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = SinkTask.current()
        writer = TaskWriter(self._options, self._schema, task)
        if not self._options.exactly_once:
            return writer.write(iterator)
        if task.query_id is None or task.batch_id is None:
            raise PipelineError("exactlyOnce: Spark does not tell which batch of a query this is")
        job = self._job(task.query_id)
        # Before the transaction begins: that would abort one that is decided on.
        if self._is_decided(job, task.batch_id):
            return SinkCommitMessage(0, query_id=task.query_id, is_decided=True)
        return writer.write_in_transaction(iterator, job)

    # The argument's name is Spark's.
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        told = commit_messages(messages)
        if self._options.exactly_once and told:
            with self._options.open_admin() as admin:
                BatchCommit(admin, self._job(_query_id(told)), batchId).commit(told)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        told = commit_messages(messages)
        if self._options.exactly_once and told:
            job = self._job(_query_id(told))
            try:
                with self._options.open_admin() as admin:
                    BatchCommit(admin, job, batchId).abort()
            except KafkaError:
                # What made the batch fail is to be told, and would not be; the next try of it, or
                # a time-out, ends them.
                logger.warning("Transactions of %s are still open", job, exc_info=True)

    def _is_decided(self, job: str, batch_id: int) -> bool:
        try:
            with self._options.open_admin() as admin:
                return BatchCommit(admin, job, batch_id).is_decided()
        except KafkaError as error:
            raise PipelineError(
                f"batch {batch_id} of {job}: the brokers did not tell whether it was written"
                f" before: {type(error).__name__}: {error}"
            ) from error

    def _job(self, query_id: str) -> str:
        return f"{self._options.transactional_id_prefix}-{query_id}"


def _query_id(messages: Sequence[SinkCommitMessage]) -> str:
    (query_id,) = {message.query_id for message in messages}
    assert query_id is not None, "write() does not return without it"
    return query_id
