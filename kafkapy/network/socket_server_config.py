"""The settings of the network layer."""

from dataclasses import dataclass

from kafkapy.common.config_def import ConfigType, Importance, InvalidValueError, at_least, config

NO_LIMIT = 2**31 - 1
UNBOUNDED = -1
OS_DEFAULT = -1


def _ip_overrides(value: tuple[str, ...]) -> str | None:
    for entry in value:
        host, colon, count = entry.rpartition(":")
        if not (host and colon and count.isdigit()):
            return f"expected host:count, found {entry}"
    return None


def _positive_or_unbounded(value: int) -> str | None:
    return None if value == UNBOUNDED or value > 0 else f"must be positive, or {UNBOUNDED}"


@dataclass(frozen=True, slots=True)
class SocketServerConfig:
    """What SocketServer and its threads are told by server.properties."""

    num_network_threads: int = config(
        "num.network.threads",
        1,
        at_least(1),
        importance=Importance.HIGH,
        doc="Processor threads per listener. Apache Kafka's default is 3; here one serves best, "
        "because Python threads share one interpreter.",
    )
    queued_max_requests: int = config(
        "queued.max.requests",
        500,
        at_least(1),
        importance=Importance.HIGH,
        doc="Requests that may wait for a handler before the network threads stop reading.",
    )
    queued_max_request_bytes: int = config(
        "queued.max.request.bytes",
        UNBOUNDED,
        _positive_or_unbounded,
        type=ConfigType.LONG,
        doc="Bytes of requests, read or being read, before nothing more is read; -1 is no bound.",
    )
    socket_send_buffer_bytes: int = config(
        "socket.send.buffer.bytes",
        256 * 1024,
        at_least(OS_DEFAULT),
        importance=Importance.HIGH,
        doc="SO_SNDBUF of every connection; -1 leaves it to the operating system. Apache Kafka's "
        "default is 102400. Left to itself Linux lets a megabyte pile up per connection, and a "
        "consumer on the same machine is served half as fast.",
    )
    socket_receive_buffer_bytes: int = config(
        "socket.receive.buffer.bytes",
        OS_DEFAULT,
        at_least(OS_DEFAULT),
        importance=Importance.HIGH,
        doc="SO_RCVBUF of every connection; -1 leaves it to the operating system. Apache Kafka's "
        "default is 102400.",
    )
    socket_request_max_bytes: int = config(
        "socket.request.max.bytes",
        100 * 1024 * 1024,
        at_least(1),
        importance=Importance.HIGH,
        doc="The largest request; a connection that announces a larger one is closed.",
    )
    socket_listen_backlog_size: int = config(
        "socket.listen.backlog.size",
        512,
        at_least(1),
        doc="Connections that may wait to be accepted; the operating system may allow fewer. "
        "Apache Kafka's default is 50, beyond which a burst of clients waits for TCP to try again.",
    )
    connections_max_idle_ms: int = config(
        "connections.max.idle.ms",
        10 * 60 * 1000,
        type=ConfigType.LONG,
        doc="A connection on which nothing happens for this long is closed; negative is never.",
    )
    max_connections: int = config(
        "max.connections",
        NO_LIMIT,
        at_least(0),
        doc="Connections to this broker over all listeners. At the limit new ones wait, except on "
        "the inter-broker listener, which takes the place of the least recently used one.",
    )
    max_connections_per_ip: int = config(
        "max.connections.per.ip",
        NO_LIMIT,
        at_least(0),
        doc="Connections from one address; further ones are closed at once.",
    )
    max_connections_per_ip_overrides: tuple[str, ...] = config(
        "max.connections.per.ip.overrides",
        (),
        _ip_overrides,
        doc="max.connections.per.ip for single hosts: host:count, comma-separated.",
    )

    def __post_init__(self) -> None:
        zero_without_overrides = (
            self.max_connections_per_ip == 0 and not self.max_connections_per_ip_overrides
        )
        if zero_without_overrides:
            raise InvalidValueError(
                "max.connections.per.ip",
                "0",
                "0 needs max.connections.per.ip.overrides, or nobody could connect",
            )

    def connections_per_ip_overrides(self) -> dict[str, int]:
        """The overrides by host name or address, as written."""
        pairs = (entry.rpartition(":") for entry in self.max_connections_per_ip_overrides)
        return {host: int(count) for host, _, count in pairs}
