"""A transaction whose records are all written and whose end is another's to decide."""

from typing import NamedTuple


class PreparedTransaction(NamedTuple):
    """What it takes to end the transaction, by anybody: AdminClient.end_transactions.

    It stays open until then, or until its time-out, or until a producer of its id begins anew.

    Ports: org.apache.kafka.clients.producer.PreparedTxnState
    """

    transactional_id: str
    producer_id: int
    epoch: int
