"""How a transaction ends."""

from enum import Enum


class TransactionResult(Enum):
    """The value is the flag of EndTxn and WriteTxnMarkers.

    Ports: org.apache.kafka.common.requests.TransactionResult
    """

    ABORT = False
    COMMIT = True
