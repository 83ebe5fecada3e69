"""Rows of one task to a producer."""

from __future__ import annotations

import pyarrow as pa

from kafkapy.clients.producer import FutureRecordMetadata, KafkaProducer
from kafkapy.common.errors import KafkaError
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.sink.kafka_sink_options import TOPIC
from kafkapy.pipeline.sink.sink_schema import PARTITION, RowError, SinkSchema


class KafkaRowWriter:
    """Sends the rows of Arrow batches and finds out what became of each. For one thread.

    The outcomes of a batch are looked at once the next one is sent: the network is never idle, and
    no more than two batches wait for theirs.

    Ports: org.apache.spark.sql.kafka010.KafkaRowWriter
    """

    def __init__(self, producer: KafkaProducer, schema: SinkSchema, *, task: int) -> None:
        # constant after construction
        self._producer = producer
        self._schema = schema
        self._task = task
        self.rows = 0  # sent so far
        self.topics: set[str] = set()  # those that rows went to
        self._unsettled: list[FutureRecordMetadata] = []  # of the last rows
        self._partition_counts: dict[str, int] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """PipelineError names the row, counted from 0 within the task, and what is wrong."""
        sent: list[FutureRecordMetadata] = []
        send = self._producer.send
        counts = self._partition_counts
        try:
            for topic, value, key, headers, partition in self._schema.rows(batch):
                if topic is None:
                    raise RowError(TOPIC, f"is null; option {TOPIC} can name one for all rows")
                if partition is not None and not 0 <= partition < counts.get(topic, 0):
                    self._check_partition(topic, partition)
                future = send(topic, value, key, headers, partition)
                sent.append(future)
                if future.failed():
                    break  # the others would wait for the same, one after the other
        except (RowError, KafkaError) as error:
            raise self._failed(self.rows + len(sent), str(error)) from error
        before, self._unsettled = self._unsettled, sent
        self._settle(before, self.rows - len(before))
        if sent and sent[-1].failed():
            self._settle(sent, self.rows)
        self.rows += len(sent)
        self.topics |= self._schema.topics(batch)

    def finish(self) -> None:
        """Wait until all rows are written; PipelineError for the first that cannot be."""
        self._producer.flush()
        self._settle(self._unsettled, self.rows - len(self._unsettled))
        self._unsettled = []

    def _check_partition(self, topic: str, partition: int) -> None:
        if partition < 0:
            raise RowError(PARTITION, f"{partition} is negative")
        # Asked anew, since the topic may have grown.
        count = self._partition_counts[topic] = len(self._producer.partitions_for(topic))
        if partition >= count:
            raise RowError(
                PARTITION, f"topic {topic} has {count} partitions, none of them {partition}"
            )

    def _settle(self, futures: list[FutureRecordMetadata], first_row: int) -> None:
        for index, future in enumerate(futures):
            if future.succeeded():
                continue
            try:
                future.get()  # ends with delivery.timeout.ms, at the latest
            except KafkaError as error:
                topic, partition = future.topic_partition
                named = f"topic {topic}" + (f", partition {partition}" if partition >= 0 else "")
                raise self._failed(
                    first_row + index, f"not written to {named}: {type(error).__name__}: {error}"
                ) from error

    def _failed(self, row: int, reason: str) -> PipelineError:
        return PipelineError(f"row {row} of task {self._task}: {reason}")
