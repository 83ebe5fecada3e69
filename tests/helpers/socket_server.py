"""A SocketServer with handlers, and a client that speaks to it in raw frames."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import MetricSpec
from kafkapy.common.network.io_platform import NATIVE, IoPlatform
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.header_versions import response_header_version
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.network.socket_server import SocketServer
from kafkapy.network.socket_server_config import SocketServerConfig
from kafkapy.server.request_handler import KafkaRequestHandlerPool
from kafkapy.utils.time import SystemTime

SERVED = (ApiKeys.METADATA, ApiKeys.API_VERSIONS, ApiKeys.PRODUCE, ApiKeys.FETCH)
Handler = Callable[[RequestChannel, Request], None]


class FixedApiVersions:
    def is_api_enabled(self, api_key: ApiKeys, version: int) -> bool:
        return api_key in SERVED and version in api_key.versions


def answer(channel: RequestChannel, request: Request) -> None:
    """What the server does unless a test wants something else."""
    match request.body:
        case None:
            channel.send_response(request, ApiVersionsResponse(error_code=35))
        case ApiVersionsRequest():
            channel.send_response(request, ApiVersionsResponse())
        case MetadataRequest():
            channel.send_response(
                request, MetadataResponse(controller_id=request.header.correlation_id)
            )
        case _:
            channel.send_no_op_response(request)


class _Apis:
    def __init__(self, server: TestServer, channel: RequestChannel) -> None:
        self._server = server
        self._channel = channel

    def handle(self, request: Request) -> None:
        self._server.handler(self._channel, request)


class TestServer:
    """Listens on 127.0.0.1, on free ports. A context manager."""

    __test__ = False

    def __init__(
        self,
        config: SocketServerConfig | None = None,
        *,
        handler: Handler = answer,
        listeners: Sequence[str] = ("PLAINTEXT",),
        control_plane_listener_name: str | None = None,
        listener_max_connections: Mapping[str, int] | None = None,
        num_handlers: int = 2,
        platform: IoPlatform = NATIVE,
        drain_timeout_ms: int = 10_000,
    ) -> None:
        self.handler = handler
        self.metrics = MetricsRegistry()
        self.socket_server = SocketServer(
            config or SocketServerConfig(),
            self.metrics,
            SystemTime(),
            listeners=[EndPoint(n, SecurityProtocol.PLAINTEXT, "127.0.0.1", 0) for n in listeners],
            api_versions=FixedApiVersions(),
            control_plane_listener_name=control_plane_listener_name,
            listener_max_connections=listener_max_connections,
            platform=platform,
            drain_timeout_ms=drain_timeout_ms,
        )
        channels = [(self.socket_server.data_plane_request_channel, num_handlers)]
        if self.socket_server.control_plane_request_channel is not None:
            channels.append((self.socket_server.control_plane_request_channel, 1))
        self.pools = [
            KafkaRequestHandlerPool(
                0,
                channel,
                _Apis(self, channel),
                time=SystemTime(),
                num_threads=count,
                metrics=self.metrics,
            )
            for channel, count in channels
        ]
        self._clients: list[Client] = []

    def __enter__(self) -> TestServer:
        self.socket_server.enable_request_processing()
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self.stop()

    def stop(self) -> None:
        self.socket_server.stop_processing_requests()
        for pool in self.pools:
            pool.shutdown()
        self.socket_server.shutdown()

    def connect(self, listener: str = "PLAINTEXT", *, source: str = "127.0.0.1") -> Client:
        client = Client(self.socket_server.bound_port(listener), source)
        self._clients.append(client)
        return client

    @property
    def threads_alive(self) -> bool:
        return self.socket_server.threads_alive and all(p.threads_alive for p in self.pools)

    def metric(self, spec: MetricSpec, **labels: object) -> Any:
        wanted = {name: str(value) for name, value in labels.items()}
        (value,) = [
            sample.value
            for sample in self.metrics.samples()
            if sample.spec is spec and dict(sample.labels) == wanted
        ]
        return value


class Client:
    """A connection that sends and receives raw frames, blocking."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.sock = socket.create_connection(
            ("127.0.0.1", port), timeout=30, source_address=(source, 0)
        )

    def send_frame(self, payload: bytes) -> None:
        self.sock.sendall(struct.pack(">i", len(payload)) + payload)

    def send(
        self, body: Message, version: int, *, correlation_id: int = 1, client_id: str = "test"
    ) -> None:
        api_key = type(body).API_KEY
        assert api_key is not None
        header = RequestHeader(
            api_key=api_key,
            api_version=version,
            correlation_id=correlation_id,
            client_id=client_id,
        )
        self.send_frame(header.to_bytes() + body.encode(version))

    def receive_frame(self) -> bytes:
        """Raises ConnectionError when the server has closed the connection."""
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def metadata(self, correlation_id: int = 1, version: int = 1) -> int:
        """Ask and be answered; the answer's controller id is the correlation id."""
        self.send(MetadataRequest(topics=None), version, correlation_id=correlation_id)
        return self.receive_metadata(version)

    def receive_metadata(self, version: int = 1) -> int:
        frame = self.receive_frame()
        start = 4 + response_header_version(ApiKeys.METADATA, version)
        return MetadataResponse.decode(frame[start:], version).controller_id

    def is_closed_by_server(self) -> bool:
        """Waits for it; False when the server sends something instead."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        """Leave by RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.sock.recv(size - len(data))
            if not piece:
                raise ConnectionError("closed by the server")
            data += piece
        return bytes(data)


class Gate:
    """A handler that holds requests back until the test opens it."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self.waiting = 0
        self._lock = threading.Lock()

    def __call__(self, channel: RequestChannel, request: Request) -> None:
        with self._lock:
            self.waiting += 1
        assert self._opened.wait(60)
        answer(channel, request)

    def open(self) -> None:
        self._opened.set()
