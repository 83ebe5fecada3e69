"""Transactions of several tasks, committed or aborted together."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from enum import Enum, auto

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.admin.transaction_description import TransactionDescription, TransactionState
from kafkapy.clients.producer import PreparedTransaction
from kafkapy.pipeline.pipeline_errors import PipelineError

logger = logging.getLogger(__name__)

_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
_ABORTED = (
    TransactionState.PREPARE_ABORT,
    TransactionState.COMPLETE_ABORT,
    TransactionState.PREPARE_EPOCH_FENCE,
)


class Outcome(Enum):
    """Where a prepared transaction is, as its coordinator sees it."""

    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()  # surely: by its time-out, or by somebody who asked for it
    UNKNOWN = auto()  # its id was used again or forgotten since


class TransactionCommitter:
    """Asks and tells the coordinators of the transactions of one job. Not thread-safe."""

    def __init__(self, admin: AdminClient, job: str) -> None:
        self._admin = admin  # constant after construction
        self._job = job

    def outcomes(
        self, transactions: Sequence[PreparedTransaction]
    ) -> dict[PreparedTransaction, Outcome]:
        described = self._admin.describe_transactions(
            [transaction.transactional_id for transaction in transactions], raise_errors=False
        )
        outcomes = {}
        for transaction in transactions:
            name = transaction.transactional_id
            error = described.errors.get(name)
            if error is not None:
                logger.warning("Transaction %s: %r", name, error)
            outcomes[transaction] = (
                Outcome.UNKNOWN if error is not None else _outcome(transaction, described[name])
            )
        return outcomes

    def require_open(self, transactions: Sequence[PreparedTransaction]) -> None:
        """PipelineError when one of them cannot be committed any more."""
        gone = [
            transaction
            for transaction, outcome in self.outcomes(transactions).items()
            if outcome is not Outcome.OPEN
        ]
        if gone:
            raise PipelineError(
                f"transactions {named(gone)} ended before they could be committed: by"
                " kafka.transaction.timeout.ms, or because another query or task uses their ids;"
                " nothing is committed"
            )

    def abort_others(self, kept: Iterable[PreparedTransaction]) -> None:
        """Those of tasks or attempts that no longer count, which would hold readers up."""
        keep = {transaction.transactional_id for transaction in kept}
        left = [
            listing.transactional_id
            for listing in self._admin.list_transactions(states=[TransactionState.ONGOING])
            if listing.transactional_id.startswith(f"{self._job}-")
            and listing.transactional_id not in keep
        ]
        if left:
            logger.info("Aborting what earlier attempts left open: %s", ", ".join(left))
            self._admin.fence_producers(left)

    def commit(self, transactions: Sequence[PreparedTransaction]) -> None:
        """PipelineError names those that are not committed."""
        results = self._admin.end_transactions(transactions, is_commit=True, raise_errors=False)
        if results.errors:
            first = next(iter(results.errors.values()))
            raise PipelineError(
                f"{len(results.errors)} of {len(transactions)} transactions are not committed yet:"
                f" {', '.join(sorted(results.errors))}: {type(first).__name__}: {first}"
            ) from first

    def abort(self, transactions: Sequence[PreparedTransaction]) -> None:
        """As far as that is possible: what stays open is ended by its time-out."""
        results = self._admin.end_transactions(transactions, is_commit=False, raise_errors=False)
        for name, error in results.errors.items():
            logger.warning("Transaction %s cannot be aborted: %r", name, error)


def named(transactions: Iterable[PreparedTransaction]) -> str:
    return ", ".join(transaction.transactional_id for transaction in transactions)


def _outcome(transaction: PreparedTransaction, now: TransactionDescription) -> Outcome:
    if now.producer_id != transaction.producer_id:
        return Outcome.UNKNOWN
    is_same = now.producer_epoch == transaction.epoch
    if is_same and now.state is TransactionState.ONGOING:
        return Outcome.OPEN
    if is_same and now.state in _COMMITTED:
        return Outcome.COMMITTED
    # The coordinator takes the next epoch when it aborts by itself, so that the producer notices.
    is_fenced = now.producer_epoch == transaction.epoch + 1
    if (is_same or is_fenced) and now.state in _ABORTED:
        return Outcome.ABORTED
    return Outcome.UNKNOWN
