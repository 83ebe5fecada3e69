"""df.write.format("kafkapy")."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.producer import PreparedTransaction
from kafkapy.common.errors import KafkaError
from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.pipeline.sink.kafka_sink_options import SinkOptions
from kafkapy.pipeline.sink.sink_commit_message import commit_messages
from kafkapy.pipeline.sink.sink_schema import SinkSchema
from kafkapy.pipeline.sink.sink_task import SinkTask
from kafkapy.pipeline.sink.task_writer import TaskWriter
from kafkapy.pipeline.sink.transaction_committer import TransactionCommitter

logger = logging.getLogger(__name__)


class KafkaWriter(DataSourceArrowWriter):
    """Writes the rows of a batch query; with exactlyOnce in transactions that end together.

    Made on the driver, where wrong columns are found; `write` runs in tasks. A task that is tried
    again writes its rows again: without exactlyOnce readers see both. With it they see all rows or
    none, unless the driver dies while it commits, which takes milliseconds: there is nobody then to
    finish it.

    Ports: org.apache.spark.sql.kafka010.KafkaBatchWrite
    """

    def __init__(
        self, options: SinkOptions, schema: StructType, *, overwrite: bool = False
    ) -> None:
        """OptionError or SchemaError for what cannot be written."""
        if overwrite:
            raise OptionError("mode", "a topic cannot be overwritten; use append")
        # constant after construction
        self._options = options
        self._schema = SinkSchema.of(schema, options.topic)
        self._job = f"{options.transactional_id_prefix}-{uuid.uuid4()}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        writer = TaskWriter(self._options, self._schema, SinkTask.current())
        if self._options.exactly_once:
            return writer.write_in_transaction(iterator, self._job)
        return writer.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if not self._options.exactly_once:
            return
        prepared = self._prepared(messages)
        with self._options.open_admin() as admin:
            committer = self._committer(admin)
            committer.require_open(prepared)
            committer.abort_others(prepared)
            committer.commit(prepared)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if not self._options.exactly_once:
            return
        try:
            with self._options.open_admin() as admin:
                self._committer(admin).abort_others([])
        except KafkaError:
            # What made the write fail is to be told, and would not be; a time-out ends them.
            logger.warning("Transactions of %s are still open", self._job, exc_info=True)

    def _committer(self, admin: AdminClient) -> TransactionCommitter:
        return TransactionCommitter(admin, self._job)

    def _prepared(
        self, messages: Sequence[WriterCommitMessage | None]
    ) -> list[PreparedTransaction]:
        return [
            message.transaction.prepared(self._job)
            for message in commit_messages(messages)
            if message.transaction is not None
        ]
