"""Where a record was written."""

from __future__ import annotations

from typing import NamedTuple

from kafkapy.common.types import TopicPartition

# With acks=0, and for a batch that the broker has had before, nobody says the offset.
UNKNOWN_OFFSET = -1


class RecordMetadata(NamedTuple):
    """The broker's word for a record. Sizes are -1 for null.

    Ports: org.apache.kafka.clients.producer.RecordMetadata
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    serialized_key_size: int
    serialized_value_size: int

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def has_offset(self) -> bool:
        return self.offset != UNKNOWN_OFFSET
