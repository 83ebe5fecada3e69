"""Which batches of a query are decided on.

The ledger is a committed offset of a consumer group that has no members: the group is named like
the query's transactions, the partition is number 0 of the first (by name) topic that the batch went
to, the offset is the number of the next batch, and the metadata lists the transactions that belong
to the last one (task_transaction.py). Of several partitions, where a batch went to other topics
than the one before, the highest offset counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.consumer import OffsetAndMetadata
from kafkapy.common.errors import OffsetMetadataTooLargeError
from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.sink.task_transaction import (
    TaskTransaction,
    decode_transactions,
    encode_transactions,
)

_PARTITION = 0


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """The last batch that is to be committed, whatever happens, and its transactions."""

    batch_id: int
    transactions: tuple[TaskTransaction, ...]
    recorded_at: TopicPartition


class BatchLedger:
    """The decisions on one query, at the brokers. Not thread-safe."""

    def __init__(self, admin: AdminClient, job: str) -> None:
        self._admin = admin  # constant after construction
        self._group = job

    def last_decision(self) -> BatchDecision | None:
        offsets = self._admin.list_consumer_group_offsets(self._group)
        recorded = [(offset, where) for where, offset in offsets.items() if offset is not None]
        if not recorded:
            return None
        last, where = max(recorded)
        if not last.metadata:
            return None  # taken back
        return BatchDecision(last.offset - 1, decode_transactions(last.metadata), where)

    def record(
        self,
        batch_id: int,
        transactions: Sequence[TaskTransaction],
        topics: Collection[str],
    ) -> BatchDecision:
        """From here on the batch is as good as committed. PipelineError for too many tasks."""
        decision = BatchDecision(
            batch_id, tuple(transactions), TopicPartition(min(topics), _PARTITION)
        )
        text = encode_transactions(transactions)
        try:
            self._write(decision.recorded_at, batch_id + 1, text)
        except OffsetMetadataTooLargeError as error:
            raise PipelineError(
                f"exactlyOnce: the transactions of {len(transactions)} tasks take {len(text)} bytes"
                " to write down, more than the brokers' offset.metadata.max.bytes: let fewer tasks"
                " write, by coalesce() or repartition()"
            ) from error
        return decision

    def take_back(self, decision: BatchDecision) -> None:
        """Nothing of the batch was committed, and nothing of it can be any more."""
        self._write(decision.recorded_at, decision.batch_id + 1, "")

    def _write(self, where: TopicPartition, offset: int, text: str) -> None:
        self._admin.alter_consumer_group_offsets(
            self._group, {where: OffsetAndMetadata(offset, text)}
        )
