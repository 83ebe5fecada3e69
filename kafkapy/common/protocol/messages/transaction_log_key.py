from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class TransactionLogKey(Message, versions="0", flexible="none"):
    """Key of a transaction's state in `__transaction_state`.

    Ports: org.apache.kafka.coordinator.transaction.generated.TransactionLogKey
    """

    transactional_id: str = string("0")
