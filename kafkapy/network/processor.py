"""The network thread of a listener."""

from __future__ import annotations

import logging
import queue
import socket
import threading
from collections import defaultdict, deque
from typing import Final, NamedTuple

from kafkapy.common.errors import InvalidRequestError
from kafkapy.common.metrics.rate import Rate
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge, Meter
from kafkapy.common.network.kafka_channel import ChannelMuteEvent, KafkaChannel
from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.network.selector import IdleTimeoutError, Selector
from kafkapy.common.network.send_receive import InvalidReceiveError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.metadata.end_point import EndPoint
from kafkapy.network.connection_quotas import ConnectionQuotas
from kafkapy.network.idle_ratio import IdleRatio
from kafkapy.network.log_limiter import LogLimiter
from kafkapy.network.request_channel import (
    CloseConnectionResponse,
    EndThrottlingResponse,
    NoOpResponse,
    Request,
    RequestChannel,
    RequestContext,
    Response,
    SendResponse,
    StartThrottlingResponse,
    metric_names,
)
from kafkapy.network.request_metrics import RequestTimes
from kafkapy.network.request_parser import RequestParser, client_information
from kafkapy.utils.time import Time

log = logging.getLogger(__name__)

_LABELS = ("listener", "networkProcessor")
CONNECTION_COUNT = Gauge(
    "kafka.server:type=socket-server-metrics,name=connection-count",
    "Open connections.",
    labels=_LABELS,
)
CONNECTION_CREATION = Meter(
    "kafka.server:type=socket-server-metrics,name=connection-creation-total",
    "Connections opened.",
    labels=_LABELS,
)
CONNECTION_CREATION_RATE = Gauge(
    "kafka.server:type=socket-server-metrics,name=connection-creation-rate",
    "Connections opened a second, of late.",
    labels=_LABELS,
)
CONNECTION_CLOSE = Meter(
    "kafka.server:type=socket-server-metrics,name=connection-close-total",
    "Connections closed.",
    labels=_LABELS,
)
CONNECTION_CLOSE_RATE = Gauge(
    "kafka.server:type=socket-server-metrics,name=connection-close-rate",
    "Connections closed a second, of late.",
    labels=_LABELS,
)

_CONNECTION_QUEUE_SIZE: Final = 20
_POLL_TIMEOUT_MS: Final = 300
# Kept at hand: asking an enum for a member is slow.
_API_VERSIONS: Final = ApiKeys.API_VERSIONS
# An error that comes back at once must not fill the log.
_PAUSE_AFTER_ERROR_MS = 100


class NewConnection(NamedTuple):
    """A connection as its acceptor got it."""

    sock: socket.socket
    host: str
    port: int


class Processor:
    """Reads requests from its share of a listener's connections and sends the responses.

    Its own thread does everything except `accept` (the acceptor), `enqueue_response` (any thread)
    and the shutdown methods. A connection is muted from the moment its request is complete until
    the response is sent: that keeps each client's requests in order.

    Ports: kafka.network.Processor
    """

    def __init__(
        self,
        processor_id: int,
        *,
        end_point: EndPoint,
        selector: Selector,
        request_channel: RequestChannel,
        request_parser: RequestParser,
        connection_quotas: ConnectionQuotas,
        metrics: MetricsRegistry,
        time: Time,
        thread_name: str,
        memory_pool: MemoryPool | None = None,
        is_privileged_listener: bool = False,
    ) -> None:
        # constant after construction
        self.id = processor_id
        self._listener_name = end_point.listener_name
        self._security_protocol = end_point.security_protocol
        self._selector = selector
        self._request_channel = request_channel
        self._request_parser = request_parser
        self._connection_quotas = connection_quotas
        self._metrics = metrics
        self._time = time
        self._memory_pool = memory_pool
        self._is_privileged_listener = is_privileged_listener
        self._refusals = LogLimiter(log, time)
        self.idle_ratio = IdleRatio(time, lambda: selector.total_wait_ns)
        self._own_thread = threading.Thread(target=self._run, name=thread_name, daemon=True)

        # written by other threads
        self._new_connections: queue.Queue[NewConnection] = queue.Queue(_CONNECTION_QUEUE_SIZE)
        self._has_new_connections = False
        self._responses: deque[Response] = deque()
        self._is_draining = False
        self._is_running = True

        # The time of the latest step; the clock is not asked more often than it matters.
        self._now_ns = time.nanoseconds()
        self._next_connection_index = 0
        self._inflight_responses: dict[str, SendResponse] = {}
        # Connections with a request between its arrival and the end of its response.
        self._requests_in_flight = 0
        self._has_stopped_reading = False
        # Requests answered in this round, by metric name and version.
        self._finished: defaultdict[tuple[str, int], list[RequestTimes]] = defaultdict(list)
        # Complete, but the request queue was full.
        self._refused_request: Request | None = None
        self._is_waiting_for_room = False

        labels = {"listener": self._listener_name, "networkProcessor": processor_id}
        self._labels: dict[str, object] = dict(labels)
        metrics.gauge(CONNECTION_COUNT, selector.channels.__len__, **self._labels)
        self._created = metrics.meter(CONNECTION_CREATION, **self._labels)
        self._closed = metrics.meter(CONNECTION_CLOSE, **self._labels)
        for gauge, meter in (
            (CONNECTION_CREATION_RATE, self._created),
            (CONNECTION_CLOSE_RATE, self._closed),
        ):
            rate = Rate(time, lambda meter=meter: meter.count)  # type: ignore[misc]
            metrics.gauge(gauge, rate.per_second, **self._labels)

    # From other threads.

    def start(self) -> None:
        self._own_thread.start()

    def accept(self, connection: NewConnection, *, may_block: bool) -> bool:
        """Take over a connection; False when too many wait already and it may not block."""
        while self._is_running:
            try:
                self._new_connections.put(
                    connection, block=may_block, timeout=_POLL_TIMEOUT_MS / 1000
                )
            except queue.Full:
                if may_block:
                    continue
                return False
            self._has_new_connections = True
            self._selector.wakeup()
            return True
        return False

    def enqueue_response(self, response: Response) -> None:
        self._responses.append(response)
        self._selector.wakeup()

    @property
    def response_queue_size(self) -> int:
        return len(self._responses)

    @property
    def is_drained(self) -> bool:
        """It reads nothing more, as `begin_draining` asked, and has answered what it had read."""
        return not self.is_alive or (self._has_stopped_reading and self._requests_in_flight == 0)

    @property
    def is_alive(self) -> bool:
        return self._own_thread.is_alive()

    def begin_draining(self) -> None:
        """Read nothing more, but answer what has been read."""
        self._is_draining = True
        self._selector.wakeup()

    def begin_shutdown(self) -> None:
        self._is_running = False
        self._selector.wakeup()

    def close(self) -> None:
        """Wait for the thread, if it ever ran, then close its connections."""
        if self._own_thread.ident is not None:
            self._own_thread.join()
        self._close_all()
        for gauge in (CONNECTION_COUNT, CONNECTION_CREATION_RATE, CONNECTION_CLOSE_RATE):
            self._metrics.remove(gauge, **self._labels)

    # The processor's own thread.

    def _run(self) -> None:
        while self._is_running:
            try:
                self._run_once()
            except Exception:
                # Whatever it was, it must not take the other connections along.
                log.exception("Processor %d got an unexpected error", self.id)
                self._time.sleep(_PAUSE_AFTER_ERROR_MS)

    def _run_once(self) -> None:
        self._configure_new_connections()
        self._process_new_responses()
        self._poll()
        self._process_completed_receives()
        self._process_completed_sends()
        self._process_disconnected()
        self._close_excess_connections()
        self._update_metrics()

    def _configure_new_connections(self) -> None:
        if not self._has_new_connections:
            return
        # Cleared before looking: what comes after the look sets it again.
        self._has_new_connections = False
        for _ in range(_CONNECTION_QUEUE_SIZE):
            try:
                connection = self._new_connections.get_nowait()
            except queue.Empty:
                return
            try:
                self._selector.register(
                    self._connection_id(connection), connection.sock, connection.host
                )
                self._created.mark()
            except Exception as error:
                log.warning("Closing a connection from %s: %s", connection.host, error)
                self._refuse(connection)
        # The others are served in between.
        self._has_new_connections = True
        self._selector.wakeup()

    def _refuse(self, connection: NewConnection) -> None:
        connection.sock.close()
        self._connection_quotas.dec(self._listener_name, connection.host)

    def _connection_id(self, connection: NewConnection) -> str:
        """localHost:localPort-remoteHost:remotePort-processor-index, unique in this broker."""
        local = connection.sock.getsockname()
        index = self._next_connection_index
        self._next_connection_index = index + 1
        remote = f"{connection.host}:{connection.port}"
        return f"{local[0]}:{local[1]}-{remote}-{self.id}-{index}"

    def _process_new_responses(self) -> None:
        responses = self._responses
        if not responses:
            return
        self._now_ns = self._time.nanoseconds()
        while responses:
            response = responses.popleft()
            request = response.request
            request.response_dequeue_time_ns = self._now_ns
            channel = self._selector.channels.get(request.context.connection_id)
            if channel is None:
                self._finish_without_connection(response)
                continue
            try:
                self._process_response(response, channel)
            except Exception:
                log.exception("Closing %s: its response could not be sent", channel.id)
                self._close_channel(channel)

    def _process_response(self, response: Response, channel: KafkaChannel) -> None:
        match response:
            case SendResponse():
                is_sent = self._selector.send(channel, response.send)
                self._now_ns = self._time.nanoseconds()
                if is_sent:
                    self._complete_send(response, channel)
                else:
                    self._inflight_responses[channel.id] = response
            case NoOpResponse():
                self._complete_request(response.request, channel)
            case CloseConnectionResponse():
                self._note_end(response.request)
                self._close_channel(channel)
            case StartThrottlingResponse():
                channel.handle_mute_event(ChannelMuteEvent.THROTTLE_STARTED)
            case EndThrottlingResponse():
                channel.handle_mute_event(ChannelMuteEvent.THROTTLE_ENDED)
                self._selector.unmute(channel)

    def _poll(self) -> None:
        self._request_channel.wake_handler()
        self._selector.poll(_POLL_TIMEOUT_MS)
        self._now_ns = self._time.nanoseconds()

    def _process_completed_receives(self) -> None:
        """Queue the requests that have come; at the queue's bound stop reading until it empties."""
        if self._refused_request is not None and not self._queue(self._refused_request):
            return
        receives = self._selector.completed_receives
        while receives:
            channel, payload = receives.popleft()
            if not channel.is_open:
                self._release(payload)
                continue
            request = self._to_request(channel, payload)
            if request is not None:
                channel.handle_mute_event(ChannelMuteEvent.REQUEST_RECEIVED)
                self._requests_in_flight += 1
                if not self._queue(request):
                    return
        if self._is_draining:
            self._selector.pause_reads()
            # All that was read before counts as in flight by now.
            self._has_stopped_reading = True
        else:
            self._selector.resume_reads()

    def _queue(self, request: Request) -> bool:
        """Hand the request to the handlers; when there is no room keep it and stop reading."""
        if self._request_channel.send_request(request):
            self._refused_request = None
            return True
        self._refused_request = request
        self._selector.pause_reads()
        if not self._is_waiting_for_room:
            self._is_waiting_for_room = True
            self._request_channel.call_when_half_empty(self._on_room)
        return False

    def _on_room(self) -> None:
        """Called by whatever thread takes the request that leaves the queue half empty."""
        self._is_waiting_for_room = False
        self._selector.wakeup()

    def _to_request(self, channel: KafkaChannel, payload: bytearray) -> Request | None:
        """None when it was no request, and the channel has been closed."""
        try:
            header, body = self._request_parser.parse(payload)
        except InvalidRequestError as error:
            self._refusals.warning("Closing %s for an invalid request: %s", channel.id, error)
        except Exception:
            log.exception("Closing %s: its request could not be parsed", channel.id)
        else:
            if header.api_key is _API_VERSIONS:
                information = client_information(body)
                if information is not None:
                    channel.client_information = information
            context = RequestContext(
                header,
                channel.id,
                channel.client_address,
                channel.principal,
                self._listener_name,
                self._security_protocol,
                channel.client_information,
                self._is_privileged_listener,
            )
            return Request(
                context,
                body,
                processor_id=self.id,
                size_in_bytes=len(payload),
                start_time_ns=self._now_ns,
                memory_pool=self._memory_pool,
            )
        self._release(payload)
        self._close_channel(channel)
        return None

    def _process_completed_sends(self) -> None:
        sends = self._selector.completed_sends
        while sends:
            channel, _ = sends.popleft()
            response = self._inflight_responses.pop(channel.id, None)
            if response is not None and channel.is_open:
                self._complete_send(response, channel)

    def _complete_send(self, response: SendResponse, channel: KafkaChannel) -> None:
        if response.on_complete is not None:
            try:
                response.on_complete()
            except Exception:
                log.exception("What follows the response to %r failed", response.request)
        self._complete_request(response.request, channel)

    def _complete_request(self, request: Request, channel: KafkaChannel) -> None:
        """The request is over: read the connection's next one."""
        self._note_end(request)
        self._requests_in_flight -= 1
        channel.handle_mute_event(ChannelMuteEvent.RESPONSE_SENT)
        self._selector.unmute(channel)

    def _process_disconnected(self) -> None:
        disconnected = self._selector.disconnected
        while disconnected:
            channel, cause = disconnected.popleft()
            self._log_disconnection(channel, cause)
            self._forget(channel)

    def _log_disconnection(self, channel: KafkaChannel, cause: Exception) -> None:
        match cause:
            case InvalidReceiveError():
                self._refusals.warning("Closing %s: %s", channel.id, cause)
            case IdleTimeoutError():
                log.debug("Closing %s: it was idle for too long", channel.id)
            case OSError() | EOFError():
                log.debug("%s is gone: %s", channel.id, cause)
            case _:
                log.error("Closing %s after an unexpected error", channel.id, exc_info=cause)

    def _close_excess_connections(self) -> None:
        if self._connection_quotas.max_connections_exceeded(self._listener_name):
            channel = self._selector.least_recently_used()
            if channel is not None:
                log.info("Closing %s: max.connections is exceeded", channel.id)
                self._close_channel(channel)

    def _finish_without_connection(self, response: Response) -> None:
        """The client did not wait for its answer."""
        if not isinstance(response, StartThrottlingResponse | EndThrottlingResponse):
            self._note_end(response.request)

    def _note_end(self, request: Request) -> None:
        """The request is over; it is recorded when this round is."""
        times = request.times(self._now_ns)
        for name in metric_names(request):
            self._finished[name, request.response_version].append(times)

    def _update_metrics(self) -> None:
        if self._finished:
            self._request_channel.update_request_metrics(self._finished)
            self._finished.clear()

    def _close_channel(self, channel: KafkaChannel) -> None:
        if channel.is_open:
            self._selector.close_channel(channel)
            self._forget(channel)

    def _forget(self, channel: KafkaChannel) -> None:
        """The bookkeeping of a connection that has been closed."""
        response = self._inflight_responses.pop(channel.id, None)
        if response is not None:
            self._note_end(response.request)
        if channel.is_request_in_flight:
            self._requests_in_flight -= 1
        self._connection_quotas.dec(self._listener_name, channel.client_address)
        self._closed.mark()

    def _release(self, payload: bytearray) -> None:
        if self._memory_pool is not None:
            self._memory_pool.release(len(payload))

    def _close_all(self) -> None:
        for channel in list(self._selector.channels.values()):
            self._close_channel(channel)
        while not self._new_connections.empty():
            self._refuse(self._new_connections.get_nowait())
        self._selector.close()
