"""server.properties, typed: one frozen slice for each package, composed here.

Only `server` knows this class; every other package receives its own slice.
"""

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kafkapy.common.config_def import (
    ConfigKey,
    ConfigType,
    Importance,
    InvalidValueError,
    at_least,
    between,
    config,
    config_keys,
    not_empty,
    one_of,
    parse,
)
from kafkapy.common.metrics.naming import MetricsNaming
from kafkapy.controller.controller_config import ControllerConfig
from kafkapy.coordinator.group.group_coordinator_config import GroupCoordinatorConfig
from kafkapy.coordinator.transaction.transaction_coordinator_config import (
    TransactionCoordinatorConfig,
)
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.network.socket_server_config import SocketServerConfig
from kafkapy.replication.replica_manager_config import ReplicaManagerConfig
from kafkapy.storage.cleaner_config import CleanerConfig
from kafkapy.storage.log_config import LogConfig, LogManagerConfig

METRICS_OFF = -1
# For cpu.affinity: one core, whichever others use least.
_FREEST_CORE = ("auto",)


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The settings that KafkaServer itself and the request handlers use."""

    broker_id: int = config(
        "broker.id",
        -1,
        at_least(-1),
        importance=Importance.HIGH,
        doc="This broker's id. With -1 a free id above reserved.broker.max.id is chosen once and "
        "kept in meta.properties.",
    )
    reserved_broker_max_id: int = config(
        "reserved.broker.max.id", 1000, at_least(0), doc="The highest id that broker.id may name."
    )
    listeners: tuple[str, ...] = config(
        "listeners",
        ("PLAINTEXT://:9092",),
        importance=Importance.HIGH,
        doc="Where the broker listens: NAME://host:port, comma-separated. An empty host is every "
        "interface; port 0 takes a free one and prints it.",
    )
    advertised_listeners: tuple[str, ...] = config(
        "advertised.listeners",
        (),
        importance=Importance.HIGH,
        doc="What clients are told to connect to, when that differs from listeners.",
    )
    listener_security_protocol_map: tuple[str, ...] = config(
        "listener.security.protocol.map",
        ("PLAINTEXT:PLAINTEXT",),
        doc="The security protocol of each listener name.",
    )
    inter_broker_listener_name: str | None = config(
        "inter.broker.listener.name",
        None,
        doc="The listener that brokers use among themselves; by default the first one.",
    )
    control_plane_listener_name: str | None = config(
        "control.plane.listener.name",
        None,
        doc="The listener that carries only the controller's requests, on threads of its own.",
    )
    num_io_threads: int = config(
        "num.io.threads",
        8,
        at_least(1),
        dynamic=True,
        importance=Importance.HIGH,
        doc="Request handler threads.",
    )
    request_timeout_ms: int = config(
        "request.timeout.ms",
        30_000,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long this broker waits for the answer to a request of its own.",
    )
    background_threads: int = config(
        "background.threads", 2, at_least(1), doc="Threads for retention, flushing, checkpoints."
    )
    num_partitions: int = config(
        "num.partitions",
        1,
        at_least(1),
        doc="Partitions of a topic that is created without a count.",
    )
    default_replication_factor: int = config(
        "default.replication.factor",
        1,
        at_least(1),
        type=ConfigType.SHORT,
        doc="Replicas of a topic that is created without a factor.",
    )
    auto_create_topics_enable: bool = config(
        "auto.create.topics.enable",
        True,
        importance=Importance.HIGH,
        doc="Whether asking for the metadata of an unknown topic creates it.",
    )
    broker_rack: str | None = config(
        "broker.rack", None, doc="The rack told to clients and used to spread replicas."
    )
    fetch_max_bytes: int = config(
        "fetch.max.bytes",
        55 * 1024 * 1024,
        at_least(1024),
        doc="The most bytes one fetch response carries, whatever the client asks for.",
    )
    max_incremental_fetch_session_cache_slots: int = config(
        "max.incremental.fetch.session.cache.slots",
        1000,
        at_least(0),
        doc="How many incremental fetch sessions are kept.",
    )
    max_request_partition_size_limit: int = config(
        "max.request.partition.size.limit",
        2000,
        at_least(1),
        doc="The most partitions one DescribeTopicPartitions response carries.",
    )
    cpu_affinity: tuple[str, ...] = config(
        "cpu.affinity",
        _FREEST_CORE,
        lambda cores: (
            None
            if cores == _FREEST_CORE or all(core.isdigit() for core in cores)
            else "expected core numbers or auto"
        ),
        doc="The cores this broker may run on; empty is any. On one core the threads of a busy "
        "broker hand over to each other faster: `auto` keeps them on the one that other processes "
        "use least. To recompress (`compression.type` other than producer) on all cores at once, "
        "leave it empty. Linux only.",
    )
    zookeeper_connect: str | None = config(
        "zookeeper.connect",
        None,
        importance=Importance.HIGH,
        doc="The ZooKeeper ensemble (host:port,…/chroot) that holds the cluster's metadata. Empty: "
        "a store embedded in this process, in a file under the first log directory.",
    )
    zookeeper_session_timeout_ms: int = config(
        "zookeeper.session.timeout.ms", 18_000, at_least(1), doc="ZooKeeper session time-out."
    )
    zookeeper_connection_timeout_ms: int | None = config(
        "zookeeper.connection.timeout.ms",
        None,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long start-up waits for ZooKeeper; by default the session time-out.",
    )
    zookeeper_max_in_flight_requests: int = config(
        "zookeeper.max.in.flight.requests",
        10,
        at_least(1),
        importance=Importance.HIGH,
        doc="The most requests sent to ZooKeeper before the first of them is answered.",
    )
    prometheus_host: str = config(
        "prometheus.host",
        "127.0.0.1",
        not_empty,
        doc="The address on which metrics are served to Prometheus.",
    )
    prometheus_port: int = config(
        "prometheus.port",
        9404,
        between(METRICS_OFF, 65535),
        doc="The port of /metrics; 0 takes a free one and prints it, -1 turns metrics off.",
    )
    metrics_naming: str = config(
        "metrics.naming",
        MetricsNaming.JMX_EXPORTER.value,
        one_of(*(naming.value for naming in MetricsNaming)),
        doc="The convention by which Prometheus metrics are named.",
    )

    def validate_change_to(self, new: "BrokerConfig") -> None:
        """Raises InvalidValueError for more than twice as many request handlers, or less than half.

        Ports: kafka.server.DynamicThreadPool.validateReconfiguration
        """
        before, after = self.num_io_threads, new.num_io_threads
        if not before // 2 <= after <= before * 2:
            raise InvalidValueError(
                "num.io.threads", str(after), f"must be between half and twice the present {before}"
            )


class KafkaConfig:
    """All settings of one broker; immutable. Raises InvalidValueError.

    Ports: kafka.server.KafkaConfig
    """

    BROKER_SLICES = (
        BrokerConfig,
        SocketServerConfig,
        LogManagerConfig,
        CleanerConfig,
        ReplicaManagerConfig,
        ControllerConfig,
        GroupCoordinatorConfig,
        TransactionCoordinatorConfig,
    )

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = dict(properties)
        self.broker = parse(BrokerConfig, properties)
        self.socket_server = parse(SocketServerConfig, properties)
        self.log_manager = parse(LogManagerConfig, properties)
        self.cleaner = parse(CleanerConfig, properties)
        self.cleaner.validate()
        self.replica_manager = parse(ReplicaManagerConfig, properties)
        self.controller = parse(ControllerConfig, properties)
        self.group_coordinator = parse(GroupCoordinatorConfig, properties)
        self.transaction_coordinator = parse(TransactionCoordinatorConfig, properties)
        self.topic_defaults = parse(LogConfig, properties, use_name=False)
        if self.topic_defaults.retention_ms == 0:
            # A topic may have no retention; of all topics it is a slip that empties the broker.
            raise InvalidValueError("log.retention.ms", "0", "must be -1 (no limit) or at least 1")
        if self.broker.broker_id > self.broker.reserved_broker_max_id:
            raise InvalidValueError(
                "broker.id",
                str(self.broker.broker_id),
                f"must be at most reserved.broker.max.id ({self.broker.reserved_broker_max_id})",
            )
        self._security_protocols = self._parse_security_protocol_map()
        self.listeners = self._parse_end_points("listeners", self.broker.listeners)
        self.inter_broker_listener_name = self._named_listener(
            "inter.broker.listener.name",
            self.broker.inter_broker_listener_name or self.listeners[0].listener_name,
        )
        self.control_plane_listener_name = (
            self._named_listener(
                "control.plane.listener.name", self.broker.control_plane_listener_name
            )
            if self.broker.control_plane_listener_name is not None
            else None
        )
        if self.control_plane_listener_name == self.inter_broker_listener_name:
            raise InvalidValueError(
                "control.plane.listener.name",
                self.inter_broker_listener_name,
                "must differ from inter.broker.listener.name",
            )

    @property
    def metrics_naming(self) -> MetricsNaming:
        return MetricsNaming(self.broker.metrics_naming)

    @property
    def is_kept_on_a_core(self) -> bool:
        return self.broker.cpu_affinity == _FREEST_CORE

    @property
    def fixed_cores(self) -> frozenset[int]:
        """The only ones to be used, if any are named."""
        return frozenset(map(int, () if self.is_kept_on_a_core else self.broker.cpu_affinity))

    def advertised_listeners(self, bound_ports: Mapping[str, int]) -> tuple[EndPoint, ...]:
        """What clients are told, once the ports that were taken for 0 are known."""
        name = "advertised.listeners"
        end_points = self._parse_end_points(
            *(
                (name, self.broker.advertised_listeners)
                if self.broker.advertised_listeners
                else ("listeners", self.broker.listeners)
            )
        )
        missing = {e.listener_name for e in end_points} - {e.listener_name for e in self.listeners}
        if missing:
            raise InvalidValueError(
                name,
                ",".join(self.broker.advertised_listeners),
                f"no such listener: {', '.join(sorted(missing))}",
            )
        return tuple(
            EndPoint(
                end_point.listener_name,
                end_point.security_protocol,
                self._advertised_host(end_point.host),
                end_point.port or bound_ports[end_point.listener_name],
            )
            for end_point in end_points
        )

    def listener_max_connections(self) -> dict[str, int]:
        """listener.name.<listener>.max.connections, where it is given."""
        limits = {}
        for end_point in self.listeners:
            name = f"listener.name.{end_point.listener_name.lower()}.max.connections"
            if (text := self.properties.get(name)) is not None:
                key = next(
                    k for k in config_keys(SocketServerConfig) if k.name == "max.connections"
                )
                limits[end_point.listener_name] = key.parse(text, name=name)
        return limits

    def value_of(self, broker_key: "BrokerKey") -> Any:
        """The value in force of a setting."""
        for slice_ in (
            self.broker,
            self.socket_server,
            self.log_manager,
            self.cleaner,
            self.replica_manager,
            self.controller,
            self.group_coordinator,
            self.transaction_coordinator,
            self.topic_defaults,
        ):
            if broker_key.key in config_keys(type(slice_)):
                return getattr(slice_, broker_key.key.field_name)
        raise KeyError(broker_key.name)

    def unknown_properties(self) -> list[str]:
        known = {name for key in self.broker_keys() for name in key.property_names}
        return sorted(
            name
            for name in self.properties
            if name not in known and not name.startswith("listener.name.")
        )

    @classmethod
    def broker_keys(cls) -> Iterator["BrokerKey"]:
        """Every setting that server.properties may hold, each name once.

        A property may mean something to the broker and to its topics (the controller asks for
        unclean.leader.election.enable, and so may a topic): the broker's meaning is listed.
        """
        seen: set[str] = set()
        for slice_class in cls.BROKER_SLICES:
            for key in config_keys(slice_class):
                names = tuple(s.name for s in key.names())
                seen.update(names)
                yield BrokerKey(key, names)
        for key in config_keys(LogConfig):
            names = tuple(s.name for s in key.synonyms if s.name not in seen)
            if names:
                yield BrokerKey(key, names)

    def _parse_security_protocol_map(self) -> dict[str, SecurityProtocol]:
        mapping = {}
        for entry in self.broker.listener_security_protocol_map:
            listener, _, protocol = entry.partition(":")
            try:
                mapping[listener.strip().upper()] = SecurityProtocol[protocol.strip().upper()]
            except KeyError:
                protocols = ", ".join(p.name for p in SecurityProtocol)
                raise InvalidValueError(
                    "listener.security.protocol.map",
                    entry,
                    f"expected NAME:PROTOCOL with a protocol of {protocols}",
                ) from None
        return mapping

    def _parse_end_points(self, name: str, texts: tuple[str, ...]) -> tuple[EndPoint, ...]:
        end_points = tuple(self._parse_end_point(name, text) for text in texts)
        if not end_points:
            raise InvalidValueError(name, "", "it is empty")
        _refuse_repeats(name, [e.listener_name for e in end_points])
        if name == "listeners":
            _refuse_repeats(name, [(e.host, e.port) for e in end_points if e.port != 0])
        return end_points

    def _parse_end_point(self, name: str, text: str) -> EndPoint:
        listener, separator, address = text.partition("://")
        host, colon, port = address.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not (separator and colon and port.isdigit() and int(port) <= 65535):
            raise InvalidValueError(name, text, "expected NAME://host:port")
        listener = listener.upper()
        protocol = self._security_protocols.get(listener)
        if protocol is None:
            raise InvalidValueError(
                name, text, f"the listener {listener} is not in listener.security.protocol.map"
            )
        if protocol is not SecurityProtocol.PLAINTEXT:
            raise InvalidValueError(name, text, f"{protocol.name} is not supported")
        return EndPoint(listener, protocol, host, int(port))

    def _named_listener(self, name: str, listener: str) -> str:
        listener = listener.upper()
        if listener not in {e.listener_name for e in self.listeners}:
            raise InvalidValueError(name, listener, "no such listener")
        return listener

    @staticmethod
    def _advertised_host(host: str) -> str:
        # A wildcard address is nothing a client could connect to.
        return socket.getfqdn() if host in ("", "0.0.0.0", "::") else host


@dataclass(frozen=True, slots=True)
class BrokerKey:
    """A setting under the names it has in server.properties, the strongest first."""

    key: ConfigKey
    property_names: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.property_names[0]


def _refuse_repeats(name: str, values: list[Any]) -> None:
    repeated = {value for value in values if values.count(value) > 1}
    if repeated:
        raise InvalidValueError(name, "", f"{repeated.pop()} is named twice")
