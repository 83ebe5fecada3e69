"""The Prometheus endpoint."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafkapy.common.errors import KafkaError
from kafkapy.common.metrics.naming import MetricsNaming
from kafkapy.common.metrics.registry import MetricsRegistry, Sample
from kafkapy.common.metrics.stats import HistogramSnapshot, Meter

if TYPE_CHECKING:
    from prometheus_client.core import Metric

log = logging.getLogger(__name__)

_REQUEST_TIMEOUT_S = 10
_PAUSE_AFTER_ERROR_S = 1


class MetricsServer:
    """Answers `GET /metrics` on a thread of its own, one scrape at a time.

    Nothing of the HTTP server or of prometheus_client is imported before the first scrape: together
    they would add a quarter of a second to start-up and 14 MB to an idle broker.
    """

    def __init__(
        self, registry: MetricsRegistry, naming: MetricsNaming, *, host: str, port: int
    ) -> None:
        # constant after construction
        self._registry = registry
        self._naming = naming
        try:
            self._socket = socket.create_server((host, port))
        except OSError as e:
            raise KafkaError(
                f"prometheus.host={host}, prometheus.port={port}: cannot listen: {e.strerror}"
            ) from e
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics-server", daemon=True)
        # only touched by the server thread
        self._exposition: _Exposition | None = None

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread out of accept
        except OSError as e:
            log.debug("Closing the metrics socket: %s", e)
        self._socket.close()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError as e:
                # Unless that is the end: out of descriptors, perhaps, which will pass.
                if not self._closed.wait(_PAUSE_AFTER_ERROR_S):
                    log.warning("Cannot accept a scrape: %s", e)
                continue
            with connection:
                try:
                    connection.settimeout(_REQUEST_TIMEOUT_S)
                    self._answer(connection)
                except OSError as e:
                    log.debug("A scrape was cut short: %s", e)
                except Exception:
                    log.exception("A scrape failed")

    def _answer(self, connection: socket.socket) -> None:
        if self._exposition is None:
            self._exposition = _Exposition(self._registry, self._naming)
        with connection.makefile("rb") as reader:
            request_line = reader.readline(8192).split()
            while reader.readline(8192).strip():
                pass  # no header changes the answer
        if len(request_line) < 2 or request_line[0] not in (b"GET", b"HEAD"):
            status, content_type, body = "405 Method Not Allowed", "text/plain", b"GET only\n"
        elif request_line[1].partition(b"?")[0] not in (b"/metrics", b"/"):
            status, content_type, body = "404 Not Found", "text/plain", b"See /metrics\n"
        else:
            status, (content_type, body) = "200 OK", self._exposition.render()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        connection.sendall(head.encode("ascii") + (body if request_line[:1] != [b"HEAD"] else b""))


class _Exposition:
    """A registry in Prometheus' text format."""

    def __init__(self, registry: MetricsRegistry, naming: MetricsNaming) -> None:
        import prometheus_client
        from prometheus_client import core

        self._registry = registry
        self._naming = naming
        self._client = prometheus_client
        self._core = core
        self._collectors = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._collectors)
        self._collectors.register(self)

    def render(self) -> tuple[str, bytes]:
        return self._client.CONTENT_TYPE_LATEST, self._client.generate_latest(self._collectors)

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Any] = {}
        for sample in self._registry.samples():
            name = self._naming.metric_name(sample.spec)
            family = families.get(name)
            if family is None:
                family = families[name] = self._family(name, sample)
            labels = dict(sample.labels)
            if isinstance(sample.value, HistogramSnapshot):
                for quantile, value in sample.value.quantiles:
                    family.add_sample(name, {**labels, "quantile": str(quantile)}, value)
                family.add_sample(f"{name}_count", labels, sample.value.count)
                family.add_sample(f"{name}_sum", labels, sample.value.total)
            else:
                family.add_sample(name, labels, sample.value)
        yield from families.values()

    def _family(self, name: str, sample: Sample) -> Metric:
        help_text = sample.spec.help
        if isinstance(sample.value, HistogramSnapshot):
            return self._core.SummaryMetricFamily(name, help_text)
        if isinstance(sample.spec, Meter) and name.endswith("_total"):
            return self._core.CounterMetricFamily(name.removesuffix("_total"), help_text)
        return self._core.GaugeMetricFamily(name, help_text)
