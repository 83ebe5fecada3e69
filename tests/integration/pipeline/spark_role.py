"""What Spark does with writers, without Spark: tasks one after the other, messages pickled."""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.admin.transaction_description import TransactionState
from kafkapy.pipeline.sink.kafka_sink_options import SinkOptions
from kafkapy.pipeline.sink.kafka_stream_writer import KafkaStreamWriter
from kafkapy.testing import BrokerHandle
from kafkapy.testing.topic_reader import IsolationLevel
from tests.helpers.ended_transactions import await_ended_transactions

VALUES = StructType().add("value", "binary")

Row = bytes | tuple[object, ...]


@contextmanager
def in_task(partition: int, attempt: int = 0, **properties: str) -> Iterator[None]:
    """As in a Python worker that Spark has given a task."""
    context = TaskContext()
    context._partitionId = partition
    context._attemptNumber = attempt
    context._localProperties = properties
    try:
        yield
    finally:
        assert TaskContext.get() is context
        TaskContext._setTaskContext(None)


def frame(schema: StructType, *rows: Sequence[object]) -> pa.RecordBatch:
    """An Arrow batch as Spark makes it of rows."""
    arrow = to_arrow_schema(schema)
    columns = list(zip(*rows, strict=True)) or [[] for _ in arrow]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, arrow, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow)


class StreamingQuery:
    """A query with a checkpoint of its own. Each step has a new writer, as after a restart."""

    def __init__(self, broker: BrokerHandle, topic: str, schema: StructType = VALUES) -> None:
        self.id = str(uuid4())
        self.broker = broker
        self.topic = topic
        self.schema = schema
        self.options = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "kafka.retry.backoff.ms": "10",
            "exactlyOnce": "true",
        }
        if "topic" not in schema.names:
            self.options["topic"] = topic

    @property
    def job(self) -> str:
        return f"kafkapy-sink-{self.id}"

    def writer(self) -> KafkaStreamWriter:
        return KafkaStreamWriter(SinkOptions.of(self.options), self.schema)

    def write_task(
        self, batch_id: int, partition: int, rows: Sequence[Row], *, attempt: int = 0
    ) -> WriterCommitMessage:
        properties = {
            "sql.streaming.queryId": self.id,
            "streaming.sql.batchId": str(batch_id),
        }
        with in_task(partition, attempt, **properties):
            cells = [row if isinstance(row, tuple) else (row,) for row in rows]
            message = self.writer().write(iter([frame(self.schema, *cells)]))
        return pickle.loads(pickle.dumps(message))

    def write(self, batch_id: int, *tasks: Sequence[Row]) -> list[WriterCommitMessage]:
        return [self.write_task(batch_id, i, rows) for i, rows in enumerate(tasks)]

    def commit(self, batch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        self.writer().commit(messages, batch_id)

    def abort(self, batch_id: int, messages: Sequence[WriterCommitMessage | None]) -> None:
        self.writer().abort(messages, batch_id)

    def run(self, batch_id: int, *tasks: Sequence[Row]) -> None:
        self.commit(batch_id, self.write(batch_id, *tasks))

    def committed(self) -> list[bytes | None]:
        return committed_values(self.broker, self.topic)

    def open_transactions(self) -> set[str]:
        """The ends of their ids."""
        with AdminClient(bootstrap_servers=self.broker.bootstrap_servers) as admin:
            listed = admin.list_transactions(states=[TransactionState.ONGOING])
        return {
            listing.transactional_id.removeprefix(f"{self.job}-")
            for listing in listed
            if listing.transactional_id.startswith(self.job)
        }


def committed_values(broker: BrokerHandle, topic: str) -> list[bytes | None]:
    """What a reader of committed records sees, sorted."""
    await_ended_transactions(broker.bootstrap_servers)
    records = broker.records(topic, isolation=IsolationLevel.READ_COMMITTED)
    return sorted(record.value for record in records)
