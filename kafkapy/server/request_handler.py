"""The threads that handle requests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Protocol

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.network.idle_ratio import IdleRatio
from kafkapy.network.request_channel import Request, RequestChannel, ShutdownRequest
from kafkapy.utils.time import Time

log = logging.getLogger(__name__)

REQUEST_HANDLER_AVG_IDLE_PERCENT = Gauge(
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
    "Share of their time that request handlers wait, 0 to 1.",
)
CONTROL_PLANE_REQUEST_HANDLER_AVG_IDLE_PERCENT = Gauge(
    "kafka.server:type=KafkaRequestHandlerPool,name=ControlPlaneRequestHandlerAvgIdlePercent",
    "Share of its time that the control plane's request handler waits, 0 to 1.",
)

_RECEIVE_TIMEOUT_MS = 300


class ApiRequestHandler(Protocol):
    """What is done with a request. Called by many threads at once.

    Ports: kafka.server.ApiRequestHandler
    """

    def handle(self, request: Request) -> None:
        """Answer it, now or later, through its request channel."""
        ...


class KafkaRequestHandler:
    """One thread that takes requests and handles them, one after the other.

    An exception out of the handler costs the connection its life, never the thread.

    Ports: kafka.server.KafkaRequestHandler
    """

    def __init__(
        self,
        handler_id: int,
        *,
        request_channel: RequestChannel,
        apis: ApiRequestHandler,
        time: Time,
        thread_name: str,
    ) -> None:
        # constant after construction
        self.id = handler_id
        self._request_channel = request_channel
        self._apis = apis
        self._time = time
        self._own_thread = threading.Thread(target=self._run, name=thread_name, daemon=True)
        self.total_idle_ns = 0  # written by the thread alone
        self._is_stopped = False  # written by others

    def start(self) -> None:
        self._own_thread.start()

    def stop(self) -> None:
        """End after the request being handled; whoever runs on takes the queued ones."""
        self._is_stopped = True

    def initiate_shutdown(self) -> None:
        """Have one handler of the channel, not necessarily this, end after the queued requests."""
        self._request_channel.send_shutdown_request()

    def await_shutdown(self) -> None:
        self._own_thread.join()

    @property
    def is_alive(self) -> bool:
        return self._own_thread.is_alive()

    def _run(self) -> None:
        channel = self._request_channel
        while not self._is_stopped:
            request = channel.poll_request()
            if request is None:
                # Only waiting is timed: while requests are queued the thread is not idle.
                start_ns = self._time.nanoseconds()
                request = channel.receive_request(_RECEIVE_TIMEOUT_MS)
                self.total_idle_ns += self._time.nanoseconds() - start_ns
            if isinstance(request, Request):
                self._handle(request)
            elif isinstance(request, ShutdownRequest):
                self._maybe_pass_on_shutdown()
                return
            # A thread that waits for the next does not keep the last, nor its records.
            request = None

    def _maybe_pass_on_shutdown(self) -> None:
        # There is one for each handler that was not stopped: a stopped one took another's.
        if self._is_stopped:
            self._request_channel.send_shutdown_request()

    def _handle(self, request: Request) -> None:
        request.request_dequeue_time_ns = self._time.nanoseconds()
        try:
            self._apis.handle(request)
        except Exception:
            log.exception("Closing the connection of %r: handling it failed", request)
            self._request_channel.close_connection(request)
        finally:
            # Once there is a response the handler's time is over.
            if not request.response_complete_time_ns:
                request.api_local_complete_time_ns = self._time.nanoseconds()
            request.release_memory()


class KafkaRequestHandlerPool:
    """The handlers of one request channel. Thread-safe.

    Ports: kafka.server.KafkaRequestHandlerPool
    """

    def __init__(
        self,
        broker_id: int,
        request_channel: RequestChannel,
        apis: ApiRequestHandler,
        *,
        time: Time,
        num_threads: int,
        metrics: MetricsRegistry,
        thread_name_prefix: str = "data-plane",
        idle_gauge: Gauge = REQUEST_HANDLER_AVG_IDLE_PERCENT,
    ) -> None:
        # constant after construction
        self._broker_id = broker_id
        self._request_channel = request_channel
        self._apis = apis
        self._time = time
        self._metrics = metrics
        self._thread_name_prefix = thread_name_prefix
        self._idle_gauge = idle_gauge
        self._lock = threading.Lock()
        # guarded by self._lock
        self._handlers: list[KafkaRequestHandler] = []
        self._ending: list[KafkaRequestHandler] = []  # stopped, but perhaps still waiting
        self._next_id = 0
        self.resize(num_threads)

    @property
    def num_threads(self) -> int:
        with self._lock:
            return len(self._handlers)

    @property
    def threads_alive(self) -> bool:
        with self._lock:
            return all(handler.is_alive for handler in self._handlers)

    def resize(self, num_threads: int) -> None:
        """Start handlers, or have some end."""
        with self._lock:
            while len(self._handlers) < num_threads:
                handler = self._new_handler_locked()
                handler.start()  # raises when there are too many threads: it is none of them then
                self._handlers.append(handler)
            self._ending = [handler for handler in self._ending if handler.is_alive]
            while len(self._handlers) > num_threads:
                self._ending.append(self._handlers.pop())
                self._ending[-1].stop()
            # Afresh, because the average is over another number of threads now.
            handlers = tuple(self._handlers)
            ratio = IdleRatio(self._time, lambda: _average_idle_ns(handlers))
            self._metrics.gauge(self._idle_gauge, ratio.value)

    def shutdown(self) -> None:
        """End all handlers after the requests that are queued already."""
        with self._lock:
            handlers, self._handlers = self._handlers, []
            ending, self._ending = self._ending, []
        for handler in handlers:
            handler.initiate_shutdown()
        for handler in handlers + ending:
            handler.await_shutdown()
        self._metrics.remove(self._idle_gauge)

    def _new_handler_locked(self) -> KafkaRequestHandler:
        handler_id = self._next_id
        self._next_id += 1
        return KafkaRequestHandler(
            handler_id,
            request_channel=self._request_channel,
            apis=self._apis,
            time=self._time,
            thread_name=f"{self._thread_name_prefix}-kafka-request-handler-"
            f"{self._broker_id}-{handler_id}",
        )


def _average_idle_ns(handlers: Sequence[KafkaRequestHandler]) -> float:
    return sum(handler.total_idle_ns for handler in handlers) / len(handlers)
