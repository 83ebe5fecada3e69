"""What a pipeline's queries do, for Prometheus."""

from __future__ import annotations

from threading import Thread
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress, QueryRun
from kafkapy.pipeline.pipeline_errors import OptionError

_NAMESPACE = "kafkapy_pipeline"
_BATCH_BUCKETS_S = (0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class PipelineMetrics:
    """Metrics in a registry of their own. Written by one thread at a time, read by any."""

    def __init__(self) -> None:
        # constant after construction
        self.registry = CollectorRegistry()
        self._rows = self._counter("rows", "Rows read.")
        self._rows_out = self._counter("output_rows", "Rows written, where the sink counts them.")
        self._dead_letters = self._counter("dead_letters", "Records that could not be decoded.")
        self._late_rows = self._counter("late_rows", "Rows dropped, being behind the watermark.")
        self._failures = self._counter("query_failures", "Ends of a query by an error.")
        self._batch_duration = Histogram(
            "batch_duration_seconds",
            "Time that a micro-batch took.",
            ["query"],
            namespace=_NAMESPACE,
            registry=self.registry,
            buckets=_BATCH_BUCKETS_S,
        )
        self._phase = self._gauge(
            "last_batch_phase_seconds", "Time of each part of the last micro-batch.", "phase"
        )
        self._lag = self._gauge(
            "lag", "Records between the last batch's end and the partition's.", "topic", "partition"
        )
        self._input_rate = self._gauge("input_rows_per_second", "Rows that came, per second.")
        self._processed_rate = self._gauge(
            "processed_rows_per_second", "Rows of the last batch by the time that it took."
        )
        self._last_batch_id = self._gauge("last_batch_id", "The last micro-batch that was done.")
        self._last_batch_time = self._gauge(
            "last_batch_timestamp_seconds", "When the last micro-batch was done."
        )
        self._watermark = self._gauge("watermark_timestamp_seconds", "The query's watermark.")
        self._state_rows = self._gauge("state_rows", "Rows in the query's state.")
        self._active = self._gauge("query_active", "1 while the query runs.")
        self._endpoint: tuple[WSGIServer, Thread] | None = None

    def serve(self, host: str, port: int) -> int:
        """Answers scrapes from now on; the port, which for 0 is a free one. Once only."""
        try:
            self._endpoint = start_http_server(port, host, self.registry)
        except OSError as e:
            reason = f"cannot listen on {host}:{port}: {e.strerror}"
            raise OptionError("metrics port", reason) from e
        return self._endpoint[0].server_port

    def on_started(self, query: QueryRun) -> None:
        self._active.labels(query.name).set(1)
        # Shown as 0 from the start: what first appears as 1 has no rate in Prometheus.
        for counter in (self._rows, self._dead_letters, self._late_rows, self._failures):
            counter.labels(query.name)

    def on_progress(self, progress: QueryProgress) -> None:
        name = progress.query.name
        self._rows.labels(name).inc(progress.rows_in)
        if progress.rows_out is not None:
            self._rows_out.labels(name).inc(progress.rows_out)
        self._dead_letters.labels(name).inc(progress.dead_letters)
        self._late_rows.labels(name).inc(progress.late_rows)
        self._batch_duration.labels(name).observe(progress.duration_ms / 1000)
        for phase, ms in progress.phases_ms.items():
            self._phase.labels(name, phase).set(ms / 1000)
        for partition in progress.partitions:
            if partition.lag is not None:
                self._lag.labels(name, partition.topic, str(partition.partition)).set(partition.lag)
        self._input_rate.labels(name).set(progress.input_rows_per_second)
        self._processed_rate.labels(name).set(progress.processed_rows_per_second)
        self._last_batch_id.labels(name).set(progress.batch_id)
        self._last_batch_time.labels(name).set(progress.end_ms / 1000)
        if progress.watermark_ms is not None:
            self._watermark.labels(name).set(progress.watermark_ms / 1000)
        self._state_rows.labels(name).set(progress.state_rows)

    def on_idle(self, query: QueryRun) -> None:
        for rate in (self._input_rate, self._processed_rate):
            rate.labels(query.name).set(0)

    def on_terminated(self, query: QueryRun, error: str | None) -> None:
        self._active.labels(query.name).set(0)
        if error is not None:
            self._failures.labels(query.name).inc()

    def close(self) -> None:
        if self._endpoint is not None:
            server, thread = self._endpoint
            self._endpoint = None
            server.shutdown()
            server.server_close()
            thread.join()

    def _counter(self, name: str, meaning: str) -> Counter:
        return Counter(name, meaning, ["query"], namespace=_NAMESPACE, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(
            name, meaning, ["query", *labels], namespace=_NAMESPACE, registry=self.registry
        )
