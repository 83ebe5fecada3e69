"""One record as the application gets it."""

from typing import Any, NamedTuple

from kafkapy.common.record.record import Header, TimestampType


class ConsumerRecord(NamedTuple):
    """A record from a partition, its key and value deserialized. Immutable.

    A tuple because a consumer makes one for each record. `leader_epoch` is -1 where the record's
    format has none; the sizes are those of the bytes before deserialization, -1 for null.

    Ports: org.apache.kafka.clients.consumer.ConsumerRecord
    """

    topic: str
    partition: int
    leader_epoch: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: tuple[Header, ...]
    serialized_key_size: int
    serialized_value_size: int
