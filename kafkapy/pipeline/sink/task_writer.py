"""What one task does with its rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.errors import InvalidTxnTimeoutError, KafkaError
from kafkapy.pipeline.kafka_client_options import PREFIX
from kafkapy.pipeline.pipeline_errors import OptionError, PipelineError
from kafkapy.pipeline.sink.kafka_row_writer import KafkaRowWriter
from kafkapy.pipeline.sink.kafka_sink_options import TRANSACTION_TIMEOUT, SinkOptions
from kafkapy.pipeline.sink.sink_commit_message import SinkCommitMessage
from kafkapy.pipeline.sink.sink_schema import SinkSchema
from kafkapy.pipeline.sink.sink_task import SinkTask
from kafkapy.pipeline.sink.task_transaction import TaskTransaction, transactional_id

logger = logging.getLogger(__name__)


class TaskWriter:
    """Writes the rows of one attempt of a task. For one thread.

    Ports: org.apache.spark.sql.kafka010.KafkaWriteTask
    """

    def __init__(self, options: SinkOptions, schema: SinkSchema, task: SinkTask) -> None:
        # constant after construction
        self._options = options
        self._schema = schema
        self._task = task

    def write(self, batches: Iterator[pa.RecordBatch]) -> SinkCommitMessage:
        """Returns when all rows are written. PipelineError for the first that cannot be."""
        with self._producer() as producer:
            rows = self._write_rows(producer, batches)
        return SinkCommitMessage(rows.rows, frozenset(rows.topics), self._task.query_id)

    def write_in_transaction(
        self, batches: Iterator[pa.RecordBatch], job: str
    ) -> SinkCommitMessage:
        """As `write`, in a transaction that is left open; `job` begins its id.

        What an earlier attempt of that id has left behind is aborted. The transaction begins with
        the first row: a task that waits for its input holds none open, and one without rows has
        none.
        """
        task = self._task
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return SinkCommitMessage(0, query_id=task.query_id)
        name = transactional_id(job, partition=task.partition, attempt=task.attempt)
        with self._producer(transactional_id=name) as producer:
            self._begin(producer, name)
            try:
                rows = self._write_rows(producer, _with_first(first, batches))
                prepared = producer.prepare_transaction()
            except (PipelineError, KafkaError):
                _abort(producer, name)
                raise
        transaction = TaskTransaction(
            task.partition, task.attempt, prepared.producer_id, prepared.epoch
        )
        return SinkCommitMessage(rows.rows, frozenset(rows.topics), task.query_id, transaction)

    def _write_rows(
        self, producer: KafkaProducer, batches: Iterator[pa.RecordBatch]
    ) -> KafkaRowWriter:
        rows = KafkaRowWriter(producer, self._schema, task=self._task.partition)
        for batch in batches:
            rows.write(batch)
        rows.finish()
        return rows

    def _begin(self, producer: KafkaProducer, name: str) -> None:
        try:
            producer.init_transactions()
            producer.begin_transaction()
        except InvalidTxnTimeoutError as error:
            raise OptionError(
                f"{PREFIX}{TRANSACTION_TIMEOUT}",
                f"{producer.config.transaction_timeout_ms} is more than the brokers'"
                " transaction.max.timeout.ms",
            ) from error
        except KafkaError as error:
            raise PipelineError(
                f"task {self._task.partition}: transaction {name} cannot begin:"
                f" {type(error).__name__}: {error}"
            ) from error

    @contextmanager
    def _producer(self, **settings: str) -> Iterator[KafkaProducer]:
        """Closed at the end; after an error without trying to send the rest."""
        producer = self._options.open_producer(**settings)
        try:
            yield producer
        except BaseException:
            producer.close(timeout=0)
            raise
        producer.close()


def _with_first(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _abort(producer: KafkaProducer, name: str) -> None:
    try:
        producer.abort_transaction()
    except KafkaError:
        # What made the task fail is to be told; the next commit aborts this one, or its time-out.
        logger.warning("Transaction %s of a failed task is still open", name, exc_info=True)
