"""What only a consumer raises, beside the protocol's errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkapy.clients.client_errors import SerializationError
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.common.errors import KafkaError, RetriableError
from kafkapy.common.types import TopicPartition


class CommitFailedError(KafkaError):
    """The offsets were not committed, because the group has gone on without this member.

    Ports: org.apache.kafka.clients.consumer.CommitFailedException
    """


class RetriableCommitFailedError(RetriableError):
    """An asynchronous commit failed in a way that a later one may not.

    Ports: org.apache.kafka.clients.consumer.RetriableCommitFailedException
    """


class InvalidOffsetError(KafkaError):
    """Partitions have no usable position and no policy says where to go.

    Ports: org.apache.kafka.clients.consumer.InvalidOffsetException
    """

    partitions: frozenset[TopicPartition] = frozenset()


class NoOffsetForPartitionError(InvalidOffsetError):
    """Nothing is committed and `auto.offset.reset` is none.

    Ports: org.apache.kafka.clients.consumer.NoOffsetForPartitionException
    """

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions = frozenset(partitions)
        names = ", ".join(str(partition) for partition in sorted(self.partitions))
        super().__init__(
            f"No committed offset for {names} and auto.offset.reset is none: seek to a position"
        )


class FetchOffsetOutOfRangeError(InvalidOffsetError):
    """The log no longer has, or does not yet have, the position; `auto.offset.reset` is none.

    Ports: org.apache.kafka.clients.consumer.OffsetOutOfRangeException
    """

    def __init__(self, positions: Mapping[TopicPartition, int]) -> None:
        self.partitions = frozenset(positions)
        self.positions = dict(positions)
        named = ", ".join(f"{tp} at {offset}" for tp, offset in sorted(positions.items()))
        super().__init__(f"The position is outside the log and auto.offset.reset is none: {named}")


class LogTruncationError(InvalidOffsetError):
    """Records that were consumed are no longer in the log; `auto.offset.reset` is none.

    Ports: org.apache.kafka.clients.consumer.LogTruncationException
    """

    def __init__(
        self,
        positions: Mapping[TopicPartition, int],
        divergent_offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> None:
        self.partitions = frozenset(positions)
        self.positions = dict(positions)
        self.divergent_offsets = dict(divergent_offsets)
        named = ", ".join(
            f"{tp} at {offset}, diverging at {divergent_offsets.get(tp, 'an unknown offset')}"
            for tp, offset in sorted(positions.items())
        )
        super().__init__(f"The log was truncated below the position: {named}")


class RecordDeserializationError(SerializationError):
    """A key or value could not be deserialized; seek past `offset` to go on.

    Ports: org.apache.kafka.common.errors.RecordDeserializationException
    """

    def __init__(self, topic_partition: TopicPartition, offset: int, what: str) -> None:
        self.topic_partition = topic_partition
        self.offset = offset
        super().__init__(
            f"The {what} of the record at offset {offset} of {topic_partition} cannot be"
            " deserialized; seek past it to go on"
        )
