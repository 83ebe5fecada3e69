"""What a consumer measures of itself."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import Time

_FETCH = "consumer-fetch-manager-metrics"
_COORDINATOR = "consumer-coordinator-metrics"
_CONSUMER = "consumer-metrics"


@dataclass(slots=True)
class Stat:
    """Values since the consumer was made: how many, their sum and the greatest."""

    count: int = 0
    total: float = 0.0
    max: float = 0.0

    def record(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.max = max(self.max, value)

    @property
    def avg(self) -> float:
        return self.total / self.count if self.count else 0.0


class ConsumerMetrics:
    """Counts and times by the names of Kafka's documentation, without the rates, which whoever
    reads totals regularly can work out. Thread-safe.

    Ports: org.apache.kafka.clients.consumer.internals.FetchMetricsManager
    """

    def __init__(self, time: Time) -> None:
        self._time = time
        self._lock = threading.Lock()
        # guarded by self._lock
        self._records = 0
        self._bytes = 0
        self._fetch_latency = Stat()
        self._fetch_size = Stat()
        self._lags: dict[TopicPartition, int] = {}
        self._max_lag = 0
        self._commit_latency = Stat()
        self._join_latency = Stat()
        self._sync_latency = Stat()
        self._rebalance_latency = Stat()
        self._failed_rebalances = 0
        self._heartbeat_latency = Stat()
        self._last_heartbeat_ms: int | None = None
        self._between_polls = Stat()
        self._last_poll_ms: int | None = None

    def records_consumed(self, partition: TopicPartition, count: int, lag: int | None) -> None:
        with self._lock:
            self._records += count
            if lag is not None:
                self._lags[partition] = lag
                self._max_lag = max(self._max_lag, lag)

    def fetched(self, size_bytes: int, latency_ms: int) -> None:
        with self._lock:
            self._bytes += size_bytes
            self._fetch_size.record(size_bytes)
            self._fetch_latency.record(latency_ms)

    def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """Forget the lags of partitions that are gone."""
        with self._lock:
            self._lags = {tp: lag for tp, lag in self._lags.items() if tp in partitions}

    def committed(self, latency_ms: int) -> None:
        with self._lock:
            self._commit_latency.record(latency_ms)

    def joined(self, latency_ms: int) -> None:
        with self._lock:
            self._join_latency.record(latency_ms)

    def synced(self, latency_ms: int) -> None:
        with self._lock:
            self._sync_latency.record(latency_ms)

    def rebalanced(self, latency_ms: int) -> None:
        with self._lock:
            self._rebalance_latency.record(latency_ms)

    def rebalance_failed(self) -> None:
        with self._lock:
            self._failed_rebalances += 1

    def heartbeat(self, latency_ms: int) -> None:
        with self._lock:
            self._heartbeat_latency.record(latency_ms)
            self._last_heartbeat_ms = self._time.hi_res_clock_ms()

    def polled(self) -> None:
        now_ms = self._time.hi_res_clock_ms()
        with self._lock:
            if self._last_poll_ms is not None:
                self._between_polls.record(now_ms - self._last_poll_ms)
            self._last_poll_ms = now_ms

    def snapshot(self, assigned_partitions: int) -> Mapping[str, Mapping[str, float]]:
        """By group and name."""
        with self._lock:
            groups: dict[str, Mapping[str, float]] = {
                _CONSUMER: {
                    "time-between-poll-avg": self._between_polls.avg,
                    "time-between-poll-max": self._between_polls.max,
                    "last-poll-seconds-ago": self._seconds_since(self._last_poll_ms),
                },
                _FETCH: {
                    "records-consumed-total": self._records,
                    "bytes-consumed-total": self._bytes,
                    "fetch-total": self._fetch_latency.count,
                    "fetch-latency-avg": self._fetch_latency.avg,
                    "fetch-latency-max": self._fetch_latency.max,
                    "fetch-size-avg": self._fetch_size.avg,
                    "fetch-size-max": self._fetch_size.max,
                    "records-per-request-avg": (
                        self._records / self._fetch_size.count if self._fetch_size.count else 0.0
                    ),
                    "records-lag-max": self._max_lag,
                },
                _COORDINATOR: {
                    "assigned-partitions": assigned_partitions,
                    "commit-total": self._commit_latency.count,
                    "commit-latency-avg": self._commit_latency.avg,
                    "commit-latency-max": self._commit_latency.max,
                    "join-total": self._join_latency.count,
                    "join-time-avg": self._join_latency.avg,
                    "join-time-max": self._join_latency.max,
                    "sync-total": self._sync_latency.count,
                    "sync-time-avg": self._sync_latency.avg,
                    "sync-time-max": self._sync_latency.max,
                    "rebalance-total": self._rebalance_latency.count,
                    "rebalance-latency-avg": self._rebalance_latency.avg,
                    "rebalance-latency-max": self._rebalance_latency.max,
                    "failed-rebalance-total": self._failed_rebalances,
                    "heartbeat-total": self._heartbeat_latency.count,
                    "heartbeat-response-time-max": self._heartbeat_latency.max,
                    "last-heartbeat-seconds-ago": self._seconds_since(self._last_heartbeat_ms),
                },
            }
            for (topic, partition), lag in self._lags.items():
                groups[f"{_FETCH}.{topic}.{partition}"] = {"records-lag": lag}
            return groups

    def _seconds_since(self, then_ms: int | None) -> float:
        """-1 when it has never been."""
        return -1.0 if then_ms is None else (self._time.hi_res_clock_ms() - then_ms) / 1000
