"""Writing records to Kafka: `from kafkapy.clients.producer import KafkaProducer`.

That class is imported when it is first used, as the consumer is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.clients.producer.future_record_metadata import FutureRecordMetadata
from kafkapy.clients.producer.partitioner import RoundRobinPartitioner
from kafkapy.clients.producer.prepared_transaction import PreparedTransaction
from kafkapy.clients.producer.producer_interceptors import ProducerInterceptor
from kafkapy.clients.producer.producer_record import ProducerRecord
from kafkapy.clients.producer.record_metadata import RecordMetadata

if TYPE_CHECKING:
    from kafkapy.clients.producer.kafka_producer import KafkaProducer

__all__ = [
    "FutureRecordMetadata",
    "KafkaProducer",
    "PreparedTransaction",
    "ProducerInterceptor",
    "ProducerRecord",
    "RecordMetadata",
    "RoundRobinPartitioner",
]


def __getattr__(name: str) -> object:
    if name == "KafkaProducer":
        from kafkapy.clients.producer.kafka_producer import KafkaProducer

        return KafkaProducer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
