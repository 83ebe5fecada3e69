"""What a task tells the driver."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from kafkapy.pipeline.sink.task_transaction import TaskTransaction


@dataclass(frozen=True)
class SinkCommitMessage(WriterCommitMessage):
    """The task is done. Picklable."""

    rows: int
    topics: frozenset[str] = frozenset()
    query_id: str | None = None
    transaction: TaskTransaction | None = None  # open; None if there was nothing to write
    is_decided: bool = False  # the batch had been decided on before: nothing was written


def commit_messages(messages: Iterable[WriterCommitMessage | None]) -> list[SinkCommitMessage]:
    """Those of the tasks that have ended well."""
    return [message for message in messages if isinstance(message, SinkCommitMessage)]
