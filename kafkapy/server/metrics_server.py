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
from kafkapy.utils.time import Time

if TYPE_CHECKING:
    from prometheus_client.core import Metric

log = logging.getLogger(__name__)

_SCRAPE_TIMEOUT_S = 10
_SCRAPES_AT_ONCE = 8
_MAX_REQUEST_BYTES = 16 * 1024
_PAUSE_AFTER_ERROR_S = 1


class MetricsServer:
    """Answers `GET /metrics`, each scrape on a thread of its own, a few of them at a time.

    A scrape gets ten seconds in all, so that slow clients cannot keep out the others for long.
    Nothing of the HTTP server or of prometheus_client is imported before the first scrape: together
    they would add a quarter of a second to start-up and 14 MB to an idle broker.
    """

    def __init__(
        self,
        registry: MetricsRegistry,
        naming: MetricsNaming,
        time: Time,
        *,
        host: str,
        port: int,
    ) -> None:
        # constant after construction
        self._registry = registry
        self._naming = naming
        self._time = time
        try:
            self._socket = socket.create_server((host, port))
        except OSError as e:
            raise KafkaError(
                f"prometheus.host={host}, prometheus.port={port}: cannot listen: {e.strerror}"
            ) from e
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._closed = threading.Event()
        self._room = threading.Semaphore(_SCRAPES_AT_ONCE)
        self._thread = threading.Thread(target=self._run, name="metrics-server", daemon=True)
        self._lock = threading.Lock()
        # guarded by self._lock
        self._scrapes: dict[threading.Thread, socket.socket] = {}
        self._rendering = threading.Lock()
        self._exposition: _Exposition | None = None  # guarded by self._rendering

    @property
    def scrapes_in_progress(self) -> int:
        return len(self._scrapes)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._room.release()  # wakes the thread if it waits for one of the scrapes to end
        _shut(self._socket)  # wakes it out of accept
        self._socket.close()
        if self._thread.is_alive():
            self._thread.join()
        with self._lock:
            scrapes = dict(self._scrapes)
        for thread, connection in scrapes.items():
            _shut(connection)  # wakes it out of reading or sending
            thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            self._room.acquire()
            try:
                connection, _ = self._socket.accept()
            except OSError as e:
                self._room.release()
                # Unless that is the end: out of descriptors, perhaps, which will pass.
                if not self._closed.wait(_PAUSE_AFTER_ERROR_S):
                    log.warning("Cannot accept a scrape: %s", e)
                continue
            deadline_ns = self._time.nanoseconds() + _SCRAPE_TIMEOUT_S * 1_000_000_000
            thread = threading.Thread(
                target=self._serve,
                args=(connection, deadline_ns),
                name="metrics-scrape",
                daemon=True,
            )
            with self._lock:
                self._scrapes[thread] = connection
            try:
                thread.start()
            except RuntimeError as e:
                log.warning("Cannot serve a scrape: %s", e)
                self._end(thread, connection)

    def _serve(self, connection: socket.socket, deadline_ns: int) -> None:
        try:
            self._answer(connection, deadline_ns)
        except OSError as e:
            log.debug("A scrape was cut short: %s", e)
        except Exception:
            log.exception("A scrape failed")
        finally:
            self._end(threading.current_thread(), connection)

    def _end(self, thread: threading.Thread, connection: socket.socket) -> None:
        connection.close()
        with self._lock:
            del self._scrapes[thread]
        self._room.release()

    def _answer(self, connection: socket.socket, deadline_ns: int) -> None:
        connection.settimeout(_SCRAPE_TIMEOUT_S)
        request = bytearray()
        # No header changes the answer.
        while b"\r\n\r\n" not in request and len(request) < _MAX_REQUEST_BYTES:
            received = connection.recv(4096)
            if not received:
                break
            request += received
            left_s = (deadline_ns - self._time.nanoseconds()) / 1_000_000_000
            if left_s <= 0:
                raise TimeoutError("the request took too long to come")
            connection.settimeout(left_s)
        request_line = bytes(request.partition(b"\r\n")[0]).split()
        if len(request_line) < 2 or request_line[0] not in (b"GET", b"HEAD"):
            status, content_type, body = "405 Method Not Allowed", "text/plain", b"GET only\n"
        elif request_line[1].partition(b"?")[0] not in (b"/metrics", b"/"):
            status, content_type, body = "404 Not Found", "text/plain", b"See /metrics\n"
        else:
            status, (content_type, body) = "200 OK", self._render()
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        connection.sendall(head.encode("ascii") + (body if request_line[:1] != [b"HEAD"] else b""))

    def _render(self) -> tuple[str, bytes]:
        with self._rendering:
            if self._exposition is None:
                self._exposition = _Exposition(self._registry, self._naming)
            return self._exposition.render()


def _shut(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError as e:
        log.debug("Closing a metrics socket: %s", e)


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
