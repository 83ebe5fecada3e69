"""What brokers would say, without brokers."""

from collections.abc import Collection, Mapping
from uuid import UUID

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.source.consumer_strategy import AssignedPartitions
from kafkapy.pipeline.source.kafka_offset_reader import NO_MATCH

FIRST_ID = UUID(int=100)


class FakeOffsetReader:
    """Topic "t" with the logs it is given, each from its first offset to its last, excluded."""

    def __init__(self, *logs: tuple[int, int]) -> None:
        self.topic_id = FIRST_ID
        self.missing: tuple[str, ...] = ()
        self.logs = {TopicPartition("t", index): log for index, log in enumerate(logs)}
        self.times: dict[TopicPartition, int] = {}  # of the only record with a time
        self.committed: list[tuple[str, dict[TopicPartition, int]]] = []
        self.commit_error: Exception | None = None
        self.asked = 0
        self.is_closed = False

    def assigned_partitions(self, known: Collection[TopicPartition] = ()) -> AssignedPartitions:
        self.asked += 1
        topic_ids = {"t": self.topic_id} if self.logs else {}
        return AssignedPartitions(frozenset(self.logs), topic_ids, self.missing)

    def earliest(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self.logs[partition][0] for partition in partitions}

    def latest(
        self,
        partitions: Collection[TopicPartition],
        known: Mapping[TopicPartition, int] | None = None,
    ) -> dict[TopicPartition, int]:
        return {partition: self.logs[partition][1] for partition in partitions}

    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {
            partition: self.logs[partition][0] if time <= self.times[partition] else NO_MATCH
            for partition, time in timestamps_ms.items()
        }

    def commit_to_group(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        if self.commit_error is not None:
            raise self.commit_error
        self.committed.append((group, dict(offsets)))

    def close(self) -> None:
        self.is_closed = True
