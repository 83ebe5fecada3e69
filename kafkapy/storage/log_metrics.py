"""Gauges of one partition's log."""

from collections.abc import Callable

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.common.types import TopicPartition

_LABELS = ("topic", "partition")
NUM_LOG_SEGMENTS = Gauge("kafka.log:type=Log,name=NumLogSegments", "Segments.", _LABELS)
LOG_START_OFFSET = Gauge("kafka.log:type=Log,name=LogStartOffset", "First offset.", _LABELS)
LOG_END_OFFSET = Gauge("kafka.log:type=Log,name=LogEndOffset", "Offset after the last.", _LABELS)
LOG_SIZE = Gauge("kafka.log:type=Log,name=Size", "Bytes of records.", _LABELS)


def register_log_gauges(
    metrics: MetricsRegistry,
    topic_partition: TopicPartition,
    *,
    num_segments: Callable[[], int],
    start_offset: Callable[[], int],
    end_offset: Callable[[], int],
    size: Callable[[], int],
) -> None:
    labels = topic_partition._asdict()
    metrics.gauge(NUM_LOG_SEGMENTS, num_segments, **labels)
    metrics.gauge(LOG_START_OFFSET, start_offset, **labels)
    metrics.gauge(LOG_END_OFFSET, end_offset, **labels)
    metrics.gauge(LOG_SIZE, size, **labels)


def remove_log_gauges(metrics: MetricsRegistry, topic_partition: TopicPartition) -> None:
    for gauge in (NUM_LOG_SEGMENTS, LOG_START_OFFSET, LOG_END_OFFSET, LOG_SIZE):
        metrics.remove(gauge, **topic_partition._asdict())
