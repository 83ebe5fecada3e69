"""Requests from the network threads to the handlers, responses back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, Protocol, TypeVar

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.common.network.kafka_channel import UNKNOWN_CLIENT, ClientInformation
from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.network.send_receive import BUFFER_TYPES, SIZE, SIZE_BYTES, NetworkSend, Part
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.header_versions import response_header_version
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.schema import Message
from kafkapy.common.security.kafka_principal import ANONYMOUS, KafkaPrincipal
from kafkapy.metadata.end_point import SecurityProtocol
from kafkapy.network.request_metrics import (
    CONSUMER_FETCH,
    FOLLOWER_FETCH,
    RequestMetricsByName,
    RequestTimes,
)
from kafkapy.network.request_queue import RequestQueue
from kafkapy.utils.time import Time

MessageT = TypeVar("MessageT", bound=Message)

REQUEST_QUEUE_SIZE = Gauge(
    "kafka.network:type=RequestChannel,name=RequestQueueSize", "Requests waiting for a handler."
)
CONTROL_PLANE_REQUEST_QUEUE_SIZE = Gauge(
    "kafka.network:type=RequestChannel,name=ControlPlaneRequestQueueSize",
    "Controller requests waiting for the control-plane handler.",
)
RESPONSE_QUEUE_SIZE = Gauge(
    "kafka.network:type=RequestChannel,name=ResponseQueueSize",
    "Responses waiting for a network thread.",
    labels=("processor",),
)

# A response's first bytes: size, correlation id and, in header version 1, no tagged fields.
_HEADER_V0: Final = Struct(">ii")
_HEADER_V1: Final = Struct(">iib")
_NS_PER_MS: Final = 1_000_000


class RequestContext:
    """Who asks, over which connection. Constant after construction.

    Ports: org.apache.kafka.common.requests.RequestContext
    """

    __slots__ = (
        "client_address",
        "client_information",
        "connection_id",
        "from_privileged_listener",
        "header",
        "listener_name",
        "principal",
        "security_protocol",
    )

    def __init__(
        self,
        header: RequestHeader,
        connection_id: str,
        client_address: str,
        principal: KafkaPrincipal = ANONYMOUS,
        listener_name: str = "PLAINTEXT",
        security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT,
        client_information: ClientInformation = UNKNOWN_CLIENT,
        from_privileged_listener: bool = False,
    ) -> None:
        self.header = header
        self.connection_id = connection_id
        self.client_address = client_address
        self.principal = principal
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.client_information = client_information
        self.from_privileged_listener = from_privileged_listener


class Request:
    """One request and the times of its stations, monotonic nanoseconds, 0 until reached.

    The network thread makes it, one handler thread (or whoever completes the delayed operation)
    answers it, the network thread sends the answer: never two at a time.

    Ports: kafka.network.RequestChannel.Request
    """

    __slots__ = (
        "_memory_pool",
        "api_local_complete_time_ns",
        "api_throttle_time_ms",
        "body",
        "context",
        "header",
        "processor_id",
        "request_dequeue_time_ns",
        "response_complete_time_ns",
        "response_dequeue_time_ns",
        "size_in_bytes",
        "start_time_ns",
    )

    def __init__(
        self,
        context: RequestContext,
        body: Message | None,
        *,
        processor_id: int = 0,
        size_in_bytes: int = 0,
        start_time_ns: int = 0,
        memory_pool: MemoryPool | None = None,
    ) -> None:
        # constant after construction
        self.context = context
        self.header = context.header
        # None only for an ApiVersions request of a version that is not supported.
        self.body = body
        self.processor_id = processor_id
        self.size_in_bytes = size_in_bytes
        self.start_time_ns = start_time_ns

        self._memory_pool = memory_pool
        self.request_dequeue_time_ns = 0
        self.api_local_complete_time_ns = 0
        self.response_complete_time_ns = 0
        self.response_dequeue_time_ns = 0
        self.api_throttle_time_ms = 0

    def body_as(self, message_class: type[MessageT]) -> MessageT:
        """The body, which the handler of this API knows to be of this class."""
        assert isinstance(self.body, message_class)
        return self.body

    @property
    def is_unsupported_api_versions(self) -> bool:
        """To be answered in version 0 with UNSUPPORTED_VERSION, from which clients step down."""
        return self.body is None

    @property
    def response_version(self) -> int:
        return 0 if self.body is None else self.header.api_version

    def release_memory(self) -> None:
        """The request's bytes no longer count against queued.max.request.bytes. Idempotent."""
        pool, self._memory_pool = self._memory_pool, None
        if pool is not None:
            pool.release(self.size_in_bytes)

    def times(self, end_time_ns: int) -> RequestTimes:
        """What its stations took, once the response is sent or there is none."""
        start_ns = self.start_time_ns
        dequeued_ns = self.request_dequeue_time_ns or start_ns
        completed_ns = self.response_complete_time_ns or end_time_ns
        # The response may be there before the handler has returned.
        local_ns = self.api_local_complete_time_ns
        if not 0 < local_ns < completed_ns:
            local_ns = completed_ns
        response_dequeued_ns = self.response_dequeue_time_ns or completed_ns
        return (
            self.size_in_bytes,
            (dequeued_ns - start_ns) / _NS_PER_MS,
            (local_ns - dequeued_ns) / _NS_PER_MS,
            (completed_ns - local_ns) / _NS_PER_MS,
            self.api_throttle_time_ms,
            (response_dequeued_ns - completed_ns) / _NS_PER_MS,
            (end_time_ns - response_dequeued_ns) / _NS_PER_MS,
            (end_time_ns - start_ns) / _NS_PER_MS,
        )

    def __repr__(self) -> str:
        return f"Request({self.header}, connection={self.context.connection_id})"


_FETCH: Final = ApiKeys.FETCH
_METRIC_NAMES: Final = {api_key: (api_key.api_name,) for api_key in ApiKeys}
_CONSUMER_FETCH_NAMES: Final = (_FETCH.api_name, CONSUMER_FETCH)
_FOLLOWER_FETCH_NAMES: Final = (_FETCH.api_name, FOLLOWER_FETCH)


def metric_names(request: Request) -> tuple[str, ...]:
    api_key = request.header.api_key
    if api_key is _FETCH and request.body is not None:
        return _FOLLOWER_FETCH_NAMES if _is_from_follower(request.body) else _CONSUMER_FETCH_NAMES
    return _METRIC_NAMES[api_key]


def _is_from_follower(fetch: Message) -> bool:
    from kafkapy.common.protocol.messages.fetch import FetchRequest

    return isinstance(fetch, FetchRequest) and (
        fetch.replica_id >= 0 or fetch.replica_state.replica_id >= 0
    )


class SendResponse:
    """An answer to be sent; `on_complete` runs on the network thread once it is."""

    __slots__ = ("on_complete", "request", "send")

    def __init__(
        self, request: Request, send: NetworkSend, on_complete: Callable[[], None] | None = None
    ) -> None:
        self.request = request
        self.send = send
        self.on_complete = on_complete


@dataclass(slots=True)
class NoOpResponse:
    """The request gets no answer; the next one may be read."""

    request: Request


@dataclass(slots=True)
class CloseConnectionResponse:
    request: Request


@dataclass(slots=True)
class StartThrottlingResponse:
    """The connection stays muted, also after the answer, until throttling ends."""

    request: Request


@dataclass(slots=True)
class EndThrottlingResponse:
    request: Request


Response = (
    SendResponse
    | NoOpResponse
    | CloseConnectionResponse
    | StartThrottlingResponse
    | EndThrottlingResponse
)


class ShutdownRequest:
    """Tells one handler to end."""

    __slots__ = ()


class ResponseProcessor(Protocol):
    """A network thread, as far as responses go."""

    @property
    def id(self) -> int: ...

    @property
    def response_queue_size(self) -> int: ...

    def enqueue_response(self, response: Response) -> None:
        """From any thread."""
        ...


class RequestChannel:
    """The meeting point of network threads and handlers. Thread-safe.

    Ports: kafka.network.RequestChannel
    """

    def __init__(
        self,
        queue_size: int,
        metrics: MetricsRegistry,
        time: Time,
        *,
        queue_size_gauge: Gauge = REQUEST_QUEUE_SIZE,
    ) -> None:
        # constant after construction
        self._registry = metrics
        self._time = time
        self._queue: RequestQueue[Request | ShutdownRequest] = RequestQueue(queue_size)
        self._queue_size_gauge = queue_size_gauge
        self.metrics = RequestMetricsByName(metrics)
        # Replaced, never changed, by add and remove: read without a lock.
        self._processors: Mapping[int, ResponseProcessor] = {}
        metrics.gauge(queue_size_gauge, self._queue.__len__)

    def add_processor(self, processor: ResponseProcessor) -> None:
        if processor.id in self._processors:
            raise ValueError(f"There is a processor {processor.id} already")
        self._processors = {**self._processors, processor.id: processor}
        self._registry.gauge(
            RESPONSE_QUEUE_SIZE, lambda: processor.response_queue_size, processor=processor.id
        )

    def remove_processor(self, processor_id: int) -> None:
        self._processors = {k: v for k, v in self._processors.items() if k != processor_id}
        self._registry.remove(RESPONSE_QUEUE_SIZE, processor=processor_id)

    @property
    def queue_size(self) -> int:
        return len(self._queue)

    def send_request(self, request: Request) -> bool:
        """Queue for the handlers, who learn of it by `wake_handler`; False when the queue is full.

        A refused network thread keeps the request, stops reading, and asks to be called by
        `call_when_half_empty`.
        """
        return self._queue.offer(request)

    def wake_handler(self) -> None:
        self._queue.wake_handler()

    def call_when_half_empty(self, callback: Callable[[], None]) -> None:
        self._queue.call_when_half_empty(callback)

    def poll_request(self) -> Request | ShutdownRequest | None:
        """The next request if there is one now."""
        return self._queue.poll()

    def receive_request(self, timeout_ms: int) -> Request | ShutdownRequest | None:
        """The next request, waited for; None when none comes within the time-out."""
        return self._queue.take(timeout_ms / 1000)

    def send_shutdown_request(self) -> None:
        """Have one handler end, after the requests that are queued already."""
        self._queue.put(ShutdownRequest())

    def send_response(
        self,
        request: Request,
        message: Message,
        *,
        on_complete: Callable[[], None] | None = None,
    ) -> None:
        """Encode on this thread, send on the network thread."""
        send = _framed(message, request.header, request.response_version)
        self._count_errors(request.header.api_key, message)
        self._complete(request, SendResponse(request, send, on_complete))

    def send_no_op_response(self, request: Request) -> None:
        """The request is done and gets no answer (acks=0)."""
        self._complete(request, NoOpResponse(request))

    def close_connection(self, request: Request) -> None:
        """The request is done and its connection of no more use."""
        self._complete(request, CloseConnectionResponse(request))

    def start_throttling(self, request: Request) -> None:
        """Keep the connection muted; to be called before the request is answered."""
        self._enqueue(request, StartThrottlingResponse(request))

    def end_throttling(self, request: Request) -> None:
        self._enqueue(request, EndThrottlingResponse(request))

    def update_request_metrics(
        self, finished: Mapping[tuple[str, int], Sequence[RequestTimes]]
    ) -> None:
        """Record answered requests, by the name their metrics have and their version."""
        for (name, version), times in finished.items():
            self.metrics[name].update(version, times)

    def _count_errors(self, api_key: ApiKeys, message: Message) -> None:
        """Count the error codes of a response, that of success included."""
        (name,) = _METRIC_NAMES[api_key]
        metrics = self.metrics[name]
        for code in message.error_codes():
            metrics.mark_error(code)

    def close(self) -> None:
        for processor_id in self._processors:
            self.remove_processor(processor_id)
        self._registry.remove(self._queue_size_gauge)

    def _complete(self, request: Request, response: Response) -> None:
        request.response_complete_time_ns = self._time.nanoseconds()
        self._enqueue(request, response)

    def _enqueue(self, request: Request, response: Response) -> None:
        processor = self._processors.get(request.processor_id)
        # Without its processor the connection is gone too, and the response of no use.
        if processor is not None:
            processor.enqueue_response(response)


def _framed(message: Message, header: RequestHeader, version: int) -> NetworkSend:
    """The message with its size and the response header in front."""
    if response_header_version(header.api_key, version) == 0:
        prefix = _HEADER_V0.pack(0, header.correlation_id)
    else:
        prefix = _HEADER_V1.pack(0, header.correlation_id, 0)
    parts: list[Part] = message.encode_parts(version, prefix)  # type: ignore[assignment]
    size = 0
    for part in parts:
        size += len(part) if isinstance(part, BUFFER_TYPES) else part.size_in_bytes
    # The first part is the codec's own buffer: the size goes where the prefix left room for it.
    SIZE.pack_into(parts[0], 0, size - SIZE_BYTES)  # type: ignore[arg-type]
    return NetworkSend(parts, size)
