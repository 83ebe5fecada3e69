"""The proof that a transaction's first append to a partition is known to its coordinator."""

from __future__ import annotations

from typing import ClassVar


class VerificationGuard:
    """Stands for one verification of one transaction; equal to itself alone.

    A number would not do: the answer to a verification may come after the transaction was aborted
    and the next one begun, and must not pass for that one's.

    Ports: org.apache.kafka.storage.internals.log.VerificationGuard
    """

    __slots__ = ()

    # Nothing was verified.
    SENTINEL: ClassVar[VerificationGuard]

    def verify(self, requested: VerificationGuard) -> bool:
        return requested is not VerificationGuard.SENTINEL and requested is self


VerificationGuard.SENTINEL = VerificationGuard()


class VerificationStateEntry:
    """A verification under way for a producer. Guarded by the log's lock.

    Several appends may wait for the same verification and come back in another order, so the
    lowest sequence number seen is the one that must be appended first.

    Ports: org.apache.kafka.storage.internals.log.VerificationStateEntry
    """

    __slots__ = ("epoch", "guard", "lowest_sequence", "timestamp")

    def __init__(self, timestamp: int, sequence: int, epoch: int) -> None:
        self.timestamp = timestamp
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch

    def maybe_update_lowest_sequence_and_epoch(self, sequence: int, epoch: int) -> None:
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
