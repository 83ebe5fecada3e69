"""Counters of what goes through the broker, per topic and for all topics together."""

import threading

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Meter, MeterInstrument


def _meter(name: str, text: str) -> Meter:
    return Meter(f"kafka.server:type=BrokerTopicMetrics,name={name}", text, labels=("topic",))


MESSAGES_IN = _meter("MessagesInPerSec", "Records appended.")
BYTES_IN = _meter("BytesInPerSec", "Bytes of records appended.")
BYTES_OUT = _meter("BytesOutPerSec", "Bytes of records sent to consumers.")
BYTES_REJECTED = _meter("BytesRejectedPerSec", "Bytes of batches above max.message.bytes.")
FAILED_PRODUCE_REQUESTS = _meter("FailedProduceRequestsPerSec", "Partitions not produced to.")
FAILED_FETCH_REQUESTS = _meter("FailedFetchRequestsPerSec", "Partitions not fetched from.")
TOTAL_PRODUCE_REQUESTS = _meter("TotalProduceRequestsPerSec", "Partitions produced to.")
TOTAL_FETCH_REQUESTS = _meter("TotalFetchRequestsPerSec", "Partitions fetched from.")
FETCH_MESSAGE_CONVERSIONS = _meter("FetchMessageConversionsPerSec", "Fetches converted down.")
PRODUCE_MESSAGE_CONVERSIONS = _meter("ProduceMessageConversionsPerSec", "Records converted up.")
REPLICATION_BYTES_IN = Meter(
    "kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesInPerSec", "Bytes from leaders."
)
REPLICATION_BYTES_OUT = Meter(
    "kafka.server:type=BrokerTopicMetrics,name=ReplicationBytesOutPerSec", "Bytes to followers."
)
REASSIGNMENT_BYTES_IN = Meter(
    "kafka.server:type=BrokerTopicMetrics,name=ReassignmentBytesInPerSec",
    "Bytes from leaders of partitions that are being reassigned.",
)
REASSIGNMENT_BYTES_OUT = Meter(
    "kafka.server:type=BrokerTopicMetrics,name=ReassignmentBytesOutPerSec",
    "Bytes to followers of partitions that are being reassigned.",
)
NO_KEY_COMPACTED_TOPIC = Meter(
    "kafka.server:type=BrokerTopicMetrics,name=NoKeyCompactedTopicRecordsPerSec",
    "Records without a key refused by a compacted topic.",
)
INVALID_MAGIC_NUMBER = Meter(
    "kafka.server:type=BrokerTopicMetrics,name=InvalidMagicNumberRecordsPerSec",
    "Batches refused for their magic number.",
)
INVALID_MESSAGE_CRC = Meter(
    "kafka.server:type=BrokerTopicMetrics,name=InvalidMessageCrcRecordsPerSec",
    "Batches refused for their checksum.",
)
INVALID_OFFSET_OR_SEQUENCE = Meter(
    "kafka.server:type=BrokerTopicMetrics,name=InvalidOffsetOrSequenceRecordsPerSec",
    "Batches refused for their offsets or sequence numbers.",
)

_PER_TOPIC = (
    MESSAGES_IN,
    BYTES_IN,
    BYTES_OUT,
    BYTES_REJECTED,
    FAILED_PRODUCE_REQUESTS,
    FAILED_FETCH_REQUESTS,
    TOTAL_PRODUCE_REQUESTS,
    TOTAL_FETCH_REQUESTS,
    FETCH_MESSAGE_CONVERSIONS,
    PRODUCE_MESSAGE_CONVERSIONS,
)


class BrokerTopicMetrics:
    """The meters of one topic, or of all topics together.

    Ports: org.apache.kafka.storage.log.metrics.BrokerTopicMetrics
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_message_conversions",
        "messages_in",
        "produce_message_conversions",
        "total_fetch_requests",
        "total_produce_requests",
    )

    def __init__(self, metrics: MetricsRegistry, topic: str | None) -> None:
        def meter(spec: Meter) -> MeterInstrument:
            return metrics.meter(spec) if topic is None else metrics.meter(spec, topic=topic)

        self.messages_in = meter(MESSAGES_IN)
        self.bytes_in = meter(BYTES_IN)
        self.bytes_out = meter(BYTES_OUT)
        self.bytes_rejected = meter(BYTES_REJECTED)
        self.failed_produce_requests = meter(FAILED_PRODUCE_REQUESTS)
        self.failed_fetch_requests = meter(FAILED_FETCH_REQUESTS)
        self.total_produce_requests = meter(TOTAL_PRODUCE_REQUESTS)
        self.total_fetch_requests = meter(TOTAL_FETCH_REQUESTS)
        self.fetch_message_conversions = meter(FETCH_MESSAGE_CONVERSIONS)
        self.produce_message_conversions = meter(PRODUCE_MESSAGE_CONVERSIONS)


class BrokerTopicStats:
    """Meters per topic, made at first use. Thread-safe; marking a known topic takes no lock.

    Ports: org.apache.kafka.storage.log.metrics.BrokerTopicStats
    """

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._metrics = metrics  # constant after construction
        self.all_topics_stats = BrokerTopicMetrics(metrics, None)
        self.replication_bytes_in = metrics.meter(REPLICATION_BYTES_IN)
        self.replication_bytes_out = metrics.meter(REPLICATION_BYTES_OUT)
        self.reassignment_bytes_in = metrics.meter(REASSIGNMENT_BYTES_IN)
        self.reassignment_bytes_out = metrics.meter(REASSIGNMENT_BYTES_OUT)
        self.no_key_compacted_topic_records = metrics.meter(NO_KEY_COMPACTED_TOPIC)
        self.invalid_magic_number_records = metrics.meter(INVALID_MAGIC_NUMBER)
        self.invalid_message_crc_records = metrics.meter(INVALID_MESSAGE_CRC)
        self.invalid_offset_or_sequence_records = metrics.meter(INVALID_OFFSET_OR_SEQUENCE)
        self._lock = threading.Lock()
        self._topics: dict[str, BrokerTopicMetrics] = {}  # written under self._lock

    def topic_stats(self, topic: str) -> BrokerTopicMetrics:
        stats = self._topics.get(topic)
        if stats is None:
            with self._lock:
                stats = self._topics.get(topic)
                if stats is None:
                    stats = self._topics[topic] = BrokerTopicMetrics(self._metrics, topic)
        return stats

    def remove_metrics(self, topic: str) -> None:
        with self._lock:
            if self._topics.pop(topic, None) is not None:
                for spec in _PER_TOPIC:
                    self._metrics.remove(spec, topic=topic)

    def update_bytes_in(self, topic: str, *, num_bytes: int, num_messages: int) -> None:
        """One append of a producer."""
        stats = self.topic_stats(topic)
        stats.bytes_in.mark(num_bytes)
        stats.messages_in.mark(num_messages)
        self.all_topics_stats.bytes_in.mark(num_bytes)
        self.all_topics_stats.messages_in.mark(num_messages)

    def update_bytes_out(self, topic: str, num_bytes: int) -> None:
        self.topic_stats(topic).bytes_out.mark(num_bytes)
        self.all_topics_stats.bytes_out.mark(num_bytes)

    def mark_bytes_rejected(self, topic: str, num_bytes: int) -> None:
        self.topic_stats(topic).bytes_rejected.mark(num_bytes)
        self.all_topics_stats.bytes_rejected.mark(num_bytes)

    def mark_produce_request(self, topic: str) -> None:
        self.topic_stats(topic).total_produce_requests.mark()
        self.all_topics_stats.total_produce_requests.mark()

    def mark_failed_produce(self, topic: str) -> None:
        self.topic_stats(topic).failed_produce_requests.mark()
        self.all_topics_stats.failed_produce_requests.mark()

    def mark_fetch_request(self, topic: str) -> None:
        self.topic_stats(topic).total_fetch_requests.mark()
        self.all_topics_stats.total_fetch_requests.mark()

    def mark_failed_fetch(self, topic: str) -> None:
        self.topic_stats(topic).failed_fetch_requests.mark()
        self.all_topics_stats.failed_fetch_requests.mark()

    def mark_fetch_conversion(self, topic: str) -> None:
        self.topic_stats(topic).fetch_message_conversions.mark()
        self.all_topics_stats.fetch_message_conversions.mark()

    def mark_produce_conversion(self, topic: str, num_records: int = 1) -> None:
        self.topic_stats(topic).produce_message_conversions.mark(num_records)
        self.all_topics_stats.produce_message_conversions.mark(num_records)


class ValidatorMetricsRecorder:
    """Counts what LogValidator refuses. Thread-safe.

    Ports: org.apache.kafka.storage.internals.log.LogValidator.MetricsRecorder
    """

    def __init__(self, stats: BrokerTopicStats) -> None:
        self._stats = stats

    def record_invalid_magic(self) -> None:
        self._stats.invalid_magic_number_records.mark()

    def record_invalid_offset(self) -> None:
        self._stats.invalid_offset_or_sequence_records.mark()

    def record_invalid_sequence(self) -> None:
        self._stats.invalid_offset_or_sequence_records.mark()

    def record_invalid_checksums(self) -> None:
        self._stats.invalid_message_crc_records.mark()

    def record_no_key_compacted_topic(self) -> None:
        self._stats.no_key_compacted_topic_records.mark()
