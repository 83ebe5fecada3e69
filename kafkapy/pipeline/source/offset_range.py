"""Which records one task reads."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from pyspark.sql.datasource import InputPartition

from kafkapy.common.types import ZERO_UUID, TopicPartition


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of one partition, the last excluded; the id is ZERO_UUID where brokers have none.

    Ports: org.apache.spark.sql.kafka010.KafkaOffsetRange
    """

    topic_partition: TopicPartition
    from_offset: int
    until_offset: int
    topic_id: UUID = ZERO_UUID

    @property
    def size(self) -> int:
        return self.until_offset - self.from_offset

    def __str__(self) -> str:
        return f"{self.topic_partition} [{self.from_offset}, {self.until_offset})"


class KafkaInputPartition(InputPartition):
    """One task's range, as Spark carries it to the task.

    Ports: org.apache.spark.sql.kafka010.KafkaBatchInputPartition
    """

    def __init__(self, offset_range: OffsetRange) -> None:
        super().__init__(str(offset_range))
        self.offset_range = offset_range  # constant after construction
