"""The two-phase commit of a micro-batch.

A batch is written in as many transactions as it has tasks, and each of them alone would be atomic.
What makes them one is the decision: a single record in the ledger (batch_ledger.py).

    tasks    rows in a transaction each, all written, left open
    driver   1. all are still open?   2. abort what others left open   3. DECISION   4. commit each

A crash before the decision: the batch is written again, and the new tasks abort what the old ones
left. A crash after it: tasks that find the decision write nothing, and the driver commits those of
the listed transactions that are still open. Either way each row is committed once. Spark asks for
the same batch until commit() has returned and its own commit log says so; a batch that is decided
on is never followed by the next one before all its transactions are committed, so it is enough to
remember the last decision. Brokers forget it when the query has rested for
offsets.retention.minutes (a week), which matters only if it was killed between its last commit and
Spark's log.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.producer import PreparedTransaction
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.sink.batch_ledger import BatchDecision, BatchLedger
from kafkapy.pipeline.sink.sink_commit_message import SinkCommitMessage
from kafkapy.pipeline.sink.transaction_committer import Outcome, TransactionCommitter, named

logger = logging.getLogger(__name__)


class BatchCommit:
    """Ends one micro-batch of a query, on the driver or, by `is_decided`, asked by its tasks.

    Not thread-safe.
    """

    def __init__(self, admin: AdminClient, job: str, batch_id: int) -> None:
        # constant after construction
        self._ledger = BatchLedger(admin, job)
        self._committer = TransactionCommitter(admin, job)
        self._job = job
        self._batch_id = batch_id

    def is_decided(self) -> bool:
        """PipelineError when later batches are: the checkpoint is not the query's last one."""
        return self._decision() is not None

    def commit(self, messages: Sequence[SinkCommitMessage]) -> None:
        """All or nothing. PipelineError says what is to be done."""
        transactions = [m.transaction for m in messages if m.transaction is not None]
        prepared = [transaction.prepared(self._job) for transaction in transactions]
        if any(message.is_decided for message in messages):
            self._resume(prepared)
            return
        self._committer.require_open(prepared)
        self._committer.abort_others(prepared)
        if transactions:
            topics = frozenset().union(*(message.topics for message in messages))
            self._ledger.record(self._batch_id, transactions, topics)
            self._committer.commit(prepared)

    def abort(self) -> None:
        """Unless the batch is decided on: Spark also aborts when a commit has failed half-way."""
        if not self.is_decided():
            # Also those of tasks that failed or were killed, which have sent no message.
            self._committer.abort_others([])

    def _decision(self) -> BatchDecision | None:
        decision = self._ledger.last_decision()
        if decision is None or decision.batch_id < self._batch_id:
            return None
        if decision.batch_id > self._batch_id:
            raise PipelineError(
                f"batch {self._batch_id} of {self._job} cannot be written: batch"
                f" {decision.batch_id} was committed already; the checkpoint is older than the"
                " topic, or two queries use it"
            )
        return decision

    def _resume(self, written_again: Sequence[PreparedTransaction]) -> None:
        """Commit what was decided on before."""
        decision = self._decision()
        if decision is None or written_again:
            # Another driver is at work with the same checkpoint.
            raise PipelineError(
                f"batch {self._batch_id} of {self._job} was decided on while it was being written:"
                " two queries use its checkpoint"
            )
        prepared = [transaction.prepared(self._job) for transaction in decision.transactions]
        outcomes = self._committer.outcomes(prepared)
        still_open = [t for t, outcome in outcomes.items() if outcome is Outcome.OPEN]
        if any(outcome in (Outcome.ABORTED, Outcome.UNKNOWN) for outcome in outcomes.values()):
            raise self._lost(decision, prepared, outcomes)
        self._committer.abort_others(prepared)
        self._committer.commit(still_open)
        logger.info(
            "Batch %d of %s had been decided on: %d of its %d transactions were still open",
            self._batch_id,
            self._job,
            len(still_open),
            len(prepared),
        )

    def _lost(
        self,
        decision: BatchDecision,
        prepared: Sequence[PreparedTransaction],
        outcomes: Mapping[PreparedTransaction, Outcome],
    ) -> PipelineError:
        """Some of what was decided on cannot be committed: take it back if nothing of it was."""
        lost = [t for t, o in outcomes.items() if o in (Outcome.ABORTED, Outcome.UNKNOWN)]
        if set(outcomes.values()) <= {Outcome.OPEN, Outcome.ABORTED}:
            self._committer.abort([t for t, o in outcomes.items() if o is Outcome.OPEN])
            # Asked again: only what is surely aborted may be written a second time.
            if set(self._committer.outcomes(prepared).values()) == {Outcome.ABORTED}:
                self._ledger.take_back(decision)
                return PipelineError(
                    f"batch {self._batch_id} of {self._job} was to be committed, but its"
                    f" transactions were ended by kafka.transaction.timeout.ms: {named(lost)};"
                    " nothing of it was committed: start the query again, and it is written anew"
                )
        return PipelineError(
            f"batch {self._batch_id} of {self._job} is committed in part only: the transactions"
            f" {named(lost)} were ended by kafka.transaction.timeout.ms, or by another use of their"
            " ids, before they could be committed; the rows of these tasks are missing"
        )
