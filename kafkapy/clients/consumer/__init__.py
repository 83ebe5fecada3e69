"""The consumer: `from kafkapy.clients.consumer import KafkaConsumer`.

That class is imported when it is first used: the admin client needs types of this package, and a
command that lists topics should not wait for a whole consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.clients.client_errors import (
    ConcurrentModificationError,
    IllegalStateError,
    WakeupError,
)
from kafkapy.clients.consumer.consumer_errors import (
    CommitFailedError,
    FetchOffsetOutOfRangeError,
    LogTruncationError,
    NoOffsetForPartitionError,
    RecordDeserializationError,
    RetriableCommitFailedError,
)
from kafkapy.clients.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kafkapy.clients.consumer.consumer_interceptor import ConsumerInterceptor
from kafkapy.clients.consumer.consumer_rebalance_listener import ConsumerRebalanceListener
from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata, OffsetAndTimestamp
from kafkapy.common.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.clients.consumer.kafka_consumer import KafkaConsumer

__all__ = [
    "CommitFailedError",
    "ConcurrentModificationError",
    "ConsumerGroupMetadata",
    "ConsumerInterceptor",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "FetchOffsetOutOfRangeError",
    "IllegalStateError",
    "KafkaConsumer",
    "LogTruncationError",
    "NoOffsetForPartitionError",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RecordDeserializationError",
    "RetriableCommitFailedError",
    "TopicPartition",
    "WakeupError",
]


def __getattr__(name: str) -> object:
    if name == "KafkaConsumer":
        from kafkapy.clients.consumer.kafka_consumer import KafkaConsumer

        return KafkaConsumer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
