"""The thread that takes a listener's new connections."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Callable, Sequence

from kafkapy.common.errors import KafkaError
from kafkapy.common.network.io_platform import NATIVE, READ, IoPlatform
from kafkapy.metadata.end_point import EndPoint
from kafkapy.network.connection_quotas import ConnectionQuotas, TooManyConnectionsError
from kafkapy.network.idle_ratio import IdleRatio
from kafkapy.network.log_limiter import LogLimiter
from kafkapy.network.processor import NewConnection, Processor
from kafkapy.network.socket_server_config import OS_DEFAULT, SocketServerConfig
from kafkapy.utils.time import Time

log = logging.getLogger(__name__)

_POLL_TIMEOUT_S = 0.5
_PAUSE_AFTER_ERROR_S = 0.1
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_IPV4_MAPPED = "::ffff:"

OpenServerSocket = Callable[[EndPoint, SocketServerConfig], socket.socket]


class Acceptor:
    """Accepts on one listener and deals connections out to its processors in turn.

    Its own thread does everything but construction and shutdown.

    Ports: kafka.network.Acceptor
    """

    def __init__(
        self,
        end_point: EndPoint,
        *,
        config: SocketServerConfig,
        processors: Sequence[Processor],
        connection_quotas: ConnectionQuotas,
        time: Time,
        thread_name_prefix: str,
        platform: IoPlatform = NATIVE,
        open_socket: OpenServerSocket,
    ) -> None:
        """Binds at once. Raises KafkaError naming the listener when that is not possible."""
        # constant after construction
        self._listener_name = end_point.listener_name
        self._config = config
        self.processors = tuple(processors)
        self._connection_quotas = connection_quotas
        self._time = time
        self._refusals = LogLimiter(log, time)
        self._server_socket = open_socket(end_point, config)
        self.port: int = self._server_socket.getsockname()[1]
        self._poller = platform.new_poller()
        self._waker = platform.new_waker()
        self._waker.register_with(self._poller)
        self._poller.register(self._server_socket.fileno(), READ)
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run,
            name=f"{thread_name_prefix}-kafka-socket-acceptor-{self._listener_name}-{self.port}",
            daemon=True,
        )

        self._next_processor = 0
        self._total_blocked_ns = 0
        self.blocked_ratio = IdleRatio(time, lambda: self._total_blocked_ns)

    def start(self) -> None:
        """Start the processors, then accept."""
        for processor in self.processors:
            processor.start()
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def close(self) -> None:
        """Accept nothing more. The processors go on."""
        self._stopped.set()
        self._waker.wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._server_socket.close()
        self._waker.close()
        self._poller.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._accept_new_connections()
            except Exception:
                log.exception("Accepting on %s failed", self._listener_name)
                self._stopped.wait(_PAUSE_AFTER_ERROR_S)

    def _accept_new_connections(self) -> None:
        for fd, _ in self._poller.poll(_POLL_TIMEOUT_S):
            if fd != self._server_socket.fileno():
                self._waker.drain()
                continue
            with contextlib.suppress(BlockingIOError):
                while not self._stopped.is_set():
                    self._accept()

    def _accept(self) -> None:
        try:
            sock, address = self._server_socket.accept()
        except ConnectionAbortedError:
            return
        except OSError as error:
            if error.errno in _OUT_OF_RESOURCES:
                # The connection stays in the backlog, so the listener stays readable.
                self._refusals.warning(
                    "Cannot accept on %s: %s", self._listener_name, error.strerror
                )
                self._stopped.wait(_PAUSE_AFTER_ERROR_S)
                return
            raise
        connection = NewConnection(sock, address[0].removeprefix(_IPV4_MAPPED), address[1])
        try:
            if not self._count(connection):
                sock.close()
                return
        except TooManyConnectionsError as error:
            self._refusals.warning("Closing a connection on %s: %s", self._listener_name, error)
            sock.close()
            return
        try:
            _configure(sock, self._config)
            assigned = self._assign(connection)
        except OSError as error:
            log.debug("A connection from %s failed at once: %s", connection.host, error)
            assigned = False
        if not assigned:
            sock.close()
            self._connection_quotas.dec(self._listener_name, connection.host)

    def _count(self, connection: NewConnection) -> bool:
        start_ns = self._time.nanoseconds()
        try:
            return self._connection_quotas.inc(self._listener_name, connection.host)
        finally:
            self._total_blocked_ns += self._time.nanoseconds() - start_ns

    def _assign(self, connection: NewConnection) -> bool:
        """Give it to the next processor that has room; when none has, wait for the last one."""
        count = len(self.processors)
        for attempt in range(count):
            processor = self.processors[self._next_processor % count]
            self._next_processor = (self._next_processor + 1) % count
            if processor.accept(connection, may_block=attempt == count - 1):
                return True
        return False


def open_server_socket(end_point: EndPoint, config: SocketServerConfig) -> socket.socket:
    """Bound, listening, non-blocking; raises KafkaError."""
    try:
        family, address = _bind_address(end_point)
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise _cannot_bind(end_point, error) from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # "::" serves IPv4 clients too.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        # Has to be known before a connection exists: it decides the TCP window's scale.
        if config.socket_receive_buffer_bytes != OS_DEFAULT:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.socket_receive_buffer_bytes)
        sock.bind(address)
        sock.listen(config.socket_listen_backlog_size)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise _cannot_bind(end_point, error) from error
    return sock


def _bind_address(end_point: EndPoint) -> tuple[socket.AddressFamily, tuple[str, int]]:
    if not end_point.host:
        if socket.has_dualstack_ipv6():
            return socket.AF_INET6, ("::", end_point.port)
        return socket.AF_INET, ("0.0.0.0", end_point.port)
    infos = socket.getaddrinfo(end_point.host, end_point.port, type=socket.SOCK_STREAM)
    # A name that has both kinds of address, such as localhost, is served by the older kind, which
    # every client can reach.
    infos.sort(key=lambda info: info[0] != socket.AF_INET)
    family, _, _, _, address = infos[0]
    return family, (str(address[0]), end_point.port)


def _cannot_bind(end_point: EndPoint, error: OSError) -> KafkaError:
    return KafkaError(
        f"Cannot listen on {end_point.connection_string} (listeners): {error.strerror or error}"
    )


def _configure(sock: socket.socket, config: SocketServerConfig) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if config.socket_send_buffer_bytes != OS_DEFAULT:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.socket_send_buffer_bytes)
