"""Writing records to Kafka: `from kafkapy.clients.producer import KafkaProducer`."""

from kafkapy.clients.producer.future_record_metadata import FutureRecordMetadata
from kafkapy.clients.producer.kafka_producer import KafkaProducer
from kafkapy.clients.producer.partitioner import RoundRobinPartitioner
from kafkapy.clients.producer.prepared_transaction import PreparedTransaction
from kafkapy.clients.producer.producer_interceptors import ProducerInterceptor
from kafkapy.clients.producer.producer_record import ProducerRecord
from kafkapy.clients.producer.record_metadata import RecordMetadata

__all__ = [
    "FutureRecordMetadata",
    "KafkaProducer",
    "PreparedTransaction",
    "ProducerInterceptor",
    "ProducerRecord",
    "RecordMetadata",
    "RoundRobinPartitioner",
]
