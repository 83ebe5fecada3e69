"""The consumer: `from kafkapy.clients.consumer import KafkaConsumer`."""

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
from kafkapy.clients.consumer.kafka_consumer import KafkaConsumer
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata, OffsetAndTimestamp
from kafkapy.common.types import TopicPartition

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
