"""The transactions that a compaction comes across."""

import heapq
from collections.abc import Iterable

from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.common.record.record_batch import RecordBatch
from kafkapy.storage.transaction_index import AbortedTxn, TransactionIndex


class _OngoingAbort:
    """An aborted transaction between its first offset and its marker.

    Ports: kafka.log.AbortedTransactionMetadata
    """

    __slots__ = ("aborted_txn", "has_batches")

    def __init__(self, aborted_txn: AbortedTxn) -> None:
        self.aborted_txn = aborted_txn
        self.has_batches = False


class CleanedTransactionMetadata:
    """Follows transactions through the batches of a log, in order. Used by one thread.

    What was aborted can go at once. A marker can go once no batch of its transaction is left; as
    long as an abort's marker stays, so does its entry in the transaction index.

    Ports: kafka.log.CleanedTransactionMetadata
    """

    def __init__(self) -> None:
        # Where aborted transactions that are kept are written to, if anywhere.
        self.cleaned_index: TransactionIndex | None = None
        self._ongoing_committed: set[int] = set()  # producers
        self._ongoing_aborted: dict[int, _OngoingAbort] = {}  # by producer
        self._aborted: list[tuple[int, AbortedTxn]] = []  # a heap, by first offset

    def add_aborted_transactions(self, aborted_txns: Iterable[AbortedTxn]) -> None:
        """Those of the part that is read next; some may be known already."""
        for aborted in aborted_txns:
            heapq.heappush(self._aborted, (aborted.first_offset, aborted))

    def on_control_batch_read(self, batch: RecordBatch) -> bool:
        """Whether nothing is left that needs this marker."""
        self._consume_aborted_up_to(batch.last_offset)
        record = next(iter(batch.records()), None)
        if record is None:
            # Its marker is gone already.
            return True
        match ControlRecordType.parse(record.key):
            case ControlRecordType.ABORT:
                aborted = self._ongoing_aborted.pop(batch.producer_id, None)
                if aborted is None or not aborted.has_batches:
                    return True
                if self.cleaned_index is not None:
                    self.cleaned_index.append(aborted.aborted_txn)
                return False
            case ControlRecordType.COMMIT:
                if batch.producer_id not in self._ongoing_committed:
                    return True
                self._ongoing_committed.discard(batch.producer_id)
                return False
            case _:
                return False

    def on_batch_read(self, batch: RecordBatch) -> bool:
        """Whether the batch was aborted."""
        self._consume_aborted_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        aborted = self._ongoing_aborted.get(batch.producer_id)
        if aborted is None:
            self._ongoing_committed.add(batch.producer_id)
            return False
        aborted.has_batches = True
        return True

    def _consume_aborted_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[0][0] <= offset:
            aborted = heapq.heappop(self._aborted)[1]
            self._ongoing_aborted.setdefault(aborted.producer_id, _OngoingAbort(aborted))
