"""What a producer has done so far, in numbers."""

from __future__ import annotations

from kafkapy.clients.producer.buffer_pool import BufferPool
from kafkapy.clients.producer.producer_batch import ProducerBatch
from kafkapy.utils.time import Time

GROUP = "producer-metrics"


class _Average:
    """Mean and maximum of values. For one writer."""

    __slots__ = ("count", "maximum", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.maximum = 0.0

    def record(self, value: float) -> None:
        self.count += 1
        self.total += value
        if value > self.maximum:
            self.maximum = value

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


class ProducerMetrics:
    """Counts of the sender. Written by its thread alone, read by any.

    Totals and rates are since the producer was made.

    Ports: org.apache.kafka.clients.producer.internals.SenderMetricsRegistry
    """

    def __init__(self, time: Time, buffer_pool: BufferPool) -> None:
        # constant after construction
        self._time = time
        self._buffer_pool = buffer_pool
        self._started_ms = time.hi_res_clock_ms()
        # written by the sender's thread
        self.records_sent = 0
        self.bytes_sent = 0
        self.requests_sent = 0
        self.record_errors = 0
        self.record_retries = 0
        self.batch_splits = 0
        self._batch_size = _Average()
        self._records_per_request = _Average()
        self._queue_time_ms = _Average()
        self._compression_rate = _Average()
        self._request_latency_ms = _Average()

    def request_sent(self, batches: list[ProducerBatch]) -> None:
        self.requests_sent += 1
        records = 0
        for batch in batches:
            size = batch.estimated_size_bytes
            records += batch.record_count
            self.bytes_sent += size
            self._batch_size.record(size)
            self._queue_time_ms.record(batch.queue_time_ms())
            self._compression_rate.record(batch.compression_ratio)
        self.records_sent += records
        self._records_per_request.record(records)

    def response_received(self, latency_ms: int) -> None:
        self._request_latency_ms.record(latency_ms)

    def snapshot(self) -> dict[str, float]:
        """By Kafka's names."""
        elapsed_s = max(1, self._time.hi_res_clock_ms() - self._started_ms) / 1000
        pool = self._buffer_pool
        return {
            "record-send-total": self.records_sent,
            "record-send-rate": self.records_sent / elapsed_s,
            "record-error-total": self.record_errors,
            "record-error-rate": self.record_errors / elapsed_s,
            "record-retry-total": self.record_retries,
            "record-retry-rate": self.record_retries / elapsed_s,
            "batch-split-total": self.batch_splits,
            "batch-size-avg": self._batch_size.mean,
            "batch-size-max": self._batch_size.maximum,
            "records-per-request-avg": self._records_per_request.mean,
            "record-queue-time-avg": self._queue_time_ms.mean,
            "record-queue-time-max": self._queue_time_ms.maximum,
            "compression-rate-avg": self._compression_rate.mean,
            "request-total": self.requests_sent,
            "request-rate": self.requests_sent / elapsed_s,
            "request-latency-avg": self._request_latency_ms.mean,
            "request-latency-max": self._request_latency_ms.maximum,
            "outgoing-byte-total": self.bytes_sent,
            "outgoing-byte-rate": self.bytes_sent / elapsed_s,
            "buffer-total-bytes": pool.total_bytes,
            "buffer-available-bytes": pool.available_bytes,
            "buffer-exhausted-total": pool.exhausted_count,
            "waiting-threads": pool.queued,
        }
