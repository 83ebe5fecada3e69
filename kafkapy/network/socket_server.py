"""The broker's listeners and their threads.

Data plane: for each listener an acceptor and num.network.threads processors; all share one request
channel. Control plane, if there is a listener for it: one acceptor and one processor with a request
channel of their own, so that the controller never waits behind clients.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence

from kafkapy.common.errors import KafkaError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.common.network.channel_builders import ChannelBuilder, PlaintextChannelBuilder
from kafkapy.common.network.io_platform import NATIVE, IoPlatform
from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.network.selector import Selector
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.network.acceptor import Acceptor, OpenServerSocket, open_server_socket
from kafkapy.network.api_version_manager import ApiVersionManager
from kafkapy.network.connection_quotas import ConnectionQuotas
from kafkapy.network.processor import Processor
from kafkapy.network.request_channel import (
    CONTROL_PLANE_REQUEST_QUEUE_SIZE,
    RequestChannel,
)
from kafkapy.network.request_parser import RequestParser
from kafkapy.network.socket_server_config import UNBOUNDED, SocketServerConfig
from kafkapy.utils.time import Time

log = logging.getLogger(__name__)

NETWORK_PROCESSOR_AVG_IDLE_PERCENT = Gauge(
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
    "Share of their time that network threads wait, 0 to 1.",
)
CONTROL_PLANE_NETWORK_PROCESSOR_AVG_IDLE_PERCENT = Gauge(
    "kafka.network:type=SocketServer,name=ControlPlaneNetworkProcessorAvgIdlePercent",
    "Share of its time that the control plane's network thread waits, 0 to 1.",
)
EXPIRED_CONNECTIONS_KILLED_COUNT = Gauge(
    "kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount",
    "Connections closed because their authentication had expired.",
)
MEMORY_POOL_AVAILABLE = Gauge(
    "kafka.network:type=SocketServer,name=MemoryPoolAvailable",
    "Bytes left of queued.max.request.bytes.",
)
MEMORY_POOL_USED = Gauge(
    "kafka.network:type=SocketServer,name=MemoryPoolUsed",
    "Bytes taken of queued.max.request.bytes.",
)
ACCEPTOR_BLOCKED_PERCENT = Gauge(
    "kafka.network:type=Acceptor,name=AcceptorBlockedPercent",
    "Share of its time that an acceptor waits for a connection slot, 0 to 1.",
    labels=("listener",),
)

CONTROL_PLANE_QUEUE_SIZE = 20
DRAIN_TIMEOUT_MS = 2_000
_DRAIN_CHECK_S = 0.01


class SocketServer:
    """Opens the listeners at construction; serves them once request processing is enabled.

    Thread-safe, but each of its methods is meant for the one thread that starts and stops the
    broker.

    Ports: kafka.network.SocketServer
    """

    def __init__(
        self,
        config: SocketServerConfig,
        metrics: MetricsRegistry,
        time: Time,
        *,
        listeners: Sequence[EndPoint],
        api_versions: ApiVersionManager,
        broker_id: int = 0,
        inter_broker_listener_name: str | None = None,
        control_plane_listener_name: str | None = None,
        listener_max_connections: Mapping[str, int] | None = None,
        platform: IoPlatform = NATIVE,
        drain_timeout_ms: int = DRAIN_TIMEOUT_MS,
        request_channel_class: type[RequestChannel] = RequestChannel,
        open_server_socket: OpenServerSocket = open_server_socket,
    ) -> None:
        """Raises KafkaError, with nothing left open, when a listener cannot be opened.

        `listener_max_connections` holds listener.name.<l>.max.connections. `drain_timeout_ms` is
        how long stopping waits for the answers to requests that were read.
        """
        # constant after construction
        self._config = config
        self._metrics = metrics
        self._time = time
        self._broker_id = broker_id
        self._platform = platform
        self._drain_timeout_ms = drain_timeout_ms
        self._open_server_socket = open_server_socket
        self._request_parser = RequestParser(api_versions)
        self._memory_pool = (
            MemoryPool(config.queued_max_request_bytes)
            if config.queued_max_request_bytes != UNBOUNDED
            else None
        )
        names = tuple(end_point.listener_name for end_point in listeners)
        self._connection_quotas = ConnectionQuotas(
            config,
            protected_listener=inter_broker_listener_name or names[0],
            listeners=names,
            listener_limits=listener_max_connections,
        )
        self.data_plane_request_channel = request_channel_class(
            config.queued_max_requests, metrics, time
        )
        self.control_plane_request_channel = (
            request_channel_class(
                CONTROL_PLANE_QUEUE_SIZE,
                metrics,
                time,
                queue_size_gauge=CONTROL_PLANE_REQUEST_QUEUE_SIZE,
            )
            if control_plane_listener_name is not None
            else None
        )
        self._control_plane_listener_name = control_plane_listener_name
        self._next_processor_id = 0
        self._acceptors: dict[str, Acceptor] = {}
        self._accepting: set[str] = set()
        self._is_stopped = False
        try:
            for end_point in listeners:
                self._acceptors[end_point.listener_name] = self._new_acceptor(end_point)
        except BaseException:
            self.shutdown()
            raise
        self._register_metrics()

    def bound_port(self, listener_name: str) -> int:
        """The port a listener really has, also when 0 was asked for."""
        try:
            return self._acceptors[listener_name].port
        except KeyError:
            raise KafkaError(f"There is no listener {listener_name}") from None

    @property
    def connection_count(self) -> int:
        return self._connection_quotas.total

    @property
    def threads_alive(self) -> bool:
        """Whether every acceptor and processor is running."""
        return all(
            acceptor.is_alive and all(processor.is_alive for processor in acceptor.processors)
            for acceptor in self._acceptors.values()
        )

    def enable_request_processing(self, *, hold: Collection[str] = ()) -> None:
        """Start accepting, the control plane first; listeners to `hold` wait for another call."""
        if self._is_stopped:
            return
        by_plane = sorted(
            self._acceptors.items(), key=lambda item: item[0] != self._control_plane_listener_name
        )
        for listener_name, acceptor in by_plane:
            if listener_name not in self._accepting and listener_name not in hold:
                self._accepting.add(listener_name)
                acceptor.start()
                log.info("Listening on %s, port %d", listener_name, acceptor.port)

    def stop_processing_requests(self) -> None:
        """Accept nothing and read nothing more, answer what was read, then close all connections.

        The handlers must still run; an answer that takes too long is given up.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        self._connection_quotas.close()
        for acceptor in self._acceptors.values():
            acceptor.close()
        processors = self._processors()
        if self._accepting:
            self._drain(processors)
        for processor in processors:
            processor.begin_shutdown()
        for processor in processors:
            processor.close()

    def shutdown(self) -> None:
        """Stop if that has not been done, and forget the metrics."""
        self.stop_processing_requests()
        self.data_plane_request_channel.close()
        if self.control_plane_request_channel is not None:
            self.control_plane_request_channel.close()
        self._unregister_metrics()

    def _processors(self) -> list[Processor]:
        return [p for acceptor in self._acceptors.values() for p in acceptor.processors]

    def _drain(self, processors: Sequence[Processor]) -> None:
        for processor in processors:
            processor.begin_draining()
        deadline_ns = self._time.nanoseconds() + self._drain_timeout_ms * 1_000_000
        pause = threading.Event()
        while not all(processor.is_drained for processor in processors):
            if self._time.nanoseconds() >= deadline_ns:
                log.info("Closing connections whose requests are still being handled")
                return
            pause.wait(_DRAIN_CHECK_S)

    def _new_acceptor(self, end_point: EndPoint) -> Acceptor:
        control_plane = self.control_plane_request_channel
        if end_point.listener_name == self._control_plane_listener_name and control_plane:
            request_channel, prefix, count = control_plane, "control-plane", 1
        else:
            request_channel, prefix = self.data_plane_request_channel, "data-plane"
            count = self._config.num_network_threads
        channel_builder = _channel_builder(end_point, self._platform)
        processors = [
            self._new_processor(end_point, channel_builder, request_channel, prefix)
            for _ in range(count)
        ]
        try:
            return Acceptor(
                end_point,
                config=self._config,
                processors=processors,
                connection_quotas=self._connection_quotas,
                time=self._time,
                thread_name_prefix=prefix,
                platform=self._platform,
                open_socket=self._open_server_socket,
            )
        except BaseException:
            for processor in processors:
                processor.close()
            raise

    def _new_processor(
        self,
        end_point: EndPoint,
        channel_builder: ChannelBuilder,
        request_channel: RequestChannel,
        thread_name_prefix: str,
    ) -> Processor:
        processor_id = self._next_processor_id
        self._next_processor_id += 1
        selector = Selector(
            channel_builder,
            self._time,
            max_receive_size=self._config.socket_request_max_bytes,
            connections_max_idle_ms=self._config.connections_max_idle_ms,
            memory_pool=self._memory_pool,
            platform=self._platform,
        )
        processor = Processor(
            processor_id,
            end_point=end_point,
            selector=selector,
            request_channel=request_channel,
            request_parser=self._request_parser,
            connection_quotas=self._connection_quotas,
            metrics=self._metrics,
            time=self._time,
            thread_name=f"{thread_name_prefix}-kafka-network-thread-{self._broker_id}-"
            f"{end_point.listener_name}-{end_point.security_protocol.name}-{processor_id}",
            memory_pool=self._memory_pool,
            is_privileged_listener=request_channel is self.control_plane_request_channel,
        )
        request_channel.add_processor(processor)
        return processor

    def _register_metrics(self) -> None:
        control = self._acceptors.get(self._control_plane_listener_name or "")
        control_processors = list(control.processors) if control is not None else []
        data_processors = [p for p in self._processors() if p not in control_processors]
        self._metrics.gauge(
            NETWORK_PROCESSOR_AVG_IDLE_PERCENT, lambda: _average_idle(data_processors)
        )
        if control_processors:
            self._metrics.gauge(
                CONTROL_PLANE_NETWORK_PROCESSOR_AVG_IDLE_PERCENT,
                lambda: _average_idle(control_processors),
            )
        # No security protocol served here has credentials that expire.
        self._metrics.gauge(EXPIRED_CONNECTIONS_KILLED_COUNT, lambda: 0)
        pool = self._memory_pool
        if pool is not None:
            self._metrics.gauge(MEMORY_POOL_AVAILABLE, lambda: pool.available_bytes)
            self._metrics.gauge(MEMORY_POOL_USED, lambda: pool.size_bytes - pool.available_bytes)
        for listener_name, acceptor in self._acceptors.items():
            self._metrics.gauge(
                ACCEPTOR_BLOCKED_PERCENT, acceptor.blocked_ratio.value, listener=listener_name
            )

    def _unregister_metrics(self) -> None:
        for gauge in (
            NETWORK_PROCESSOR_AVG_IDLE_PERCENT,
            CONTROL_PLANE_NETWORK_PROCESSOR_AVG_IDLE_PERCENT,
            EXPIRED_CONNECTIONS_KILLED_COUNT,
            MEMORY_POOL_AVAILABLE,
            MEMORY_POOL_USED,
        ):
            self._metrics.remove(gauge)
        for listener_name in self._acceptors:
            self._metrics.remove(ACCEPTOR_BLOCKED_PERCENT, listener=listener_name)


def _channel_builder(end_point: EndPoint, platform: IoPlatform) -> ChannelBuilder:
    if end_point.security_protocol is SecurityProtocol.PLAINTEXT:
        return PlaintextChannelBuilder(platform)
    raise KafkaError(
        f"Cannot listen on {end_point.connection_string} (listeners): the security protocol "
        f"{end_point.security_protocol.name} is not supported"
    )


def _average_idle(processors: Sequence[Processor]) -> float:
    return sum(processor.idle_ratio.value() for processor in processors) / len(processors)
