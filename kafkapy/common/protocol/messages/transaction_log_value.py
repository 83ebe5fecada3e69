from __future__ import annotations

from kafkapy.common.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string


class TransactionLogValue(Message, versions="0-1", flexible="1+"):
    """A transaction's state in `__transaction_state`.

    Ports: org.apache.kafka.coordinator.transaction.generated.TransactionLogValue
    """

    class PartitionsSchema(Struct):
        topic: str = string("0+")
        partition_ids: list[int] = array(int32, "0+")

    producer_id: int = int64("0+")
    previous_producer_id: int = int64("1+", default=-1, tag=0)
    next_producer_id: int = int64("1+", default=-1, tag=1)
    producer_epoch: int = int16("0+")
    transaction_timeout_ms: int = int32("0+")
    transaction_status: int = int8("0+")
    transaction_partitions: list[PartitionsSchema] | None = array(
        "PartitionsSchema", "0+", nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = int64("0+")
    transaction_start_timestamp_ms: int = int64("0+")
    client_transaction_version: int = int16("1+", tag=2)
