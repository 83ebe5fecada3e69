"""The settings of a consumer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafkapy.clients.client_config import CommonClientConfig
from kafkapy.clients.consumer.offset_reset_strategy import OffsetResetStrategy
from kafkapy.common.config_def import (
    ConfigType,
    Importance,
    at_least,
    config,
    not_empty,
    one_of,
)
from kafkapy.common.errors import InvalidConfigurationError

READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"


def _callable_or_deserializer(value: Any) -> str | None:
    if value is None or callable(value) or hasattr(value, "deserialize"):
        return None
    return "must be a function of the bytes, or an object with deserialize(topic, headers, bytes)"


@dataclass(frozen=True, slots=True)
class ConsumerConfig(CommonClientConfig):
    """What KafkaConsumer takes as keyword arguments or properties.

    Ports: org.apache.kafka.clients.consumer.ConsumerConfig
    """

    # Kafka's 64 KiB keep Linux from sizing the buffer: a third slower where fetches are large.
    receive_buffer_bytes: int = config(
        "receive.buffer.bytes", -1, at_least(-1), doc="SO_RCVBUF; -1: the system's default."
    )
    group_id: str | None = config(
        "group.id",
        None,
        importance=Importance.HIGH,
        doc="The group to share partitions and keep offsets with; none for a consumer on its own.",
    )
    group_instance_id: str | None = config(
        "group.instance.id",
        None,
        not_empty,
        doc="A name that outlives restarts: a member that has one keeps its partitions over them.",
    )
    session_timeout_ms: int = config(
        "session.timeout.ms",
        45_000,
        at_least(1),
        importance=Importance.HIGH,
        doc="Without a heartbeat for so long a member is dead to its group.",
    )
    heartbeat_interval_ms: int = config(
        "heartbeat.interval.ms",
        3_000,
        at_least(1),
        importance=Importance.HIGH,
        doc="How often heartbeats are sent: at most a third of the session timeout.",
    )
    max_poll_interval_ms: int = config(
        "max.poll.interval.ms",
        300_000,
        at_least(1),
        doc="A member that does not poll for so long leaves its group.",
    )
    max_poll_records: int = config(
        "max.poll.records", 500, at_least(1), doc="The most records that one poll returns."
    )
    enable_auto_commit: bool = config(
        "enable.auto.commit",
        True,
        doc="Commit what has been returned by poll from time to time; needs a group.",
    )
    auto_commit_interval_ms: int = config(
        "auto.commit.interval.ms",
        5_000,
        at_least(0),
        importance=Importance.LOW,
        doc="How often offsets are committed with enable.auto.commit.",
    )
    auto_offset_reset: str = config(
        "auto.offset.reset",
        OffsetResetStrategy.LATEST.value,
        one_of(*(strategy.value for strategy in OffsetResetStrategy)),
        doc="Where to start without a committed offset; none: raise an error.",
    )
    partition_assignment_strategy: tuple[Any, ...] = config(
        "partition.assignment.strategy",
        ("range", "cooperative-sticky"),
        not_empty,
        doc="Assignors by preference: range, roundrobin, sticky, cooperative-sticky, or a"
        " ConsumerPartitionAssignor.",
    )
    fetch_min_bytes: int = config(
        "fetch.min.bytes", 1, at_least(0), doc="A broker waits until it has so much to send."
    )
    fetch_max_bytes: int = config(
        "fetch.max.bytes",
        50 * 1024 * 1024,
        at_least(0),
        doc="The most that one fetch returns, though never less than one batch.",
    )
    fetch_max_wait_ms: int = config(
        "fetch.max.wait.ms",
        500,
        at_least(0),
        importance=Importance.LOW,
        doc="How long a broker waits for fetch.min.bytes.",
    )
    max_partition_fetch_bytes: int = config(
        "max.partition.fetch.bytes",
        1024 * 1024,
        at_least(0),
        importance=Importance.HIGH,
        doc="The most of one partition in a fetch, though never less than one batch.",
    )
    check_crcs: bool = config(
        "check.crcs",
        True,
        importance=Importance.LOW,
        doc="Verify the checksums of the batches fetched.",
    )
    isolation_level: str = config(
        "isolation.level",
        READ_UNCOMMITTED,
        one_of(READ_UNCOMMITTED, READ_COMMITTED),
        doc="Whether records of aborted and of open transactions are returned too.",
    )
    client_rack: str = config(
        "client.rack", "", importance=Importance.LOW, doc="Where this client is: fetch from there."
    )
    exclude_internal_topics: bool = config(
        "exclude.internal.topics",
        True,
        doc="A subscription by pattern leaves out topics that are internal to Kafka.",
    )
    allow_auto_create_topics: bool = config(
        "allow.auto.create.topics",
        True,
        doc="Subscribing creates a topic that is not there, if brokers allow that.",
    )
    default_api_timeout_ms: int = config(
        "default.api.timeout.ms",
        60_000,
        at_least(0),
        doc="How long calls may take that are given no time of their own.",
    )
    key_deserializer: Any = config(  # noqa: RUF009
        "key.deserializer",
        None,
        _callable_or_deserializer,
        type=ConfigType.CLASS,
        doc="Makes keys out of bytes; without one they stay bytes.",
    )
    value_deserializer: Any = config(  # noqa: RUF009
        "value.deserializer",
        None,
        _callable_or_deserializer,
        type=ConfigType.CLASS,
        doc="Makes values out of bytes; without one they stay bytes.",
    )
    interceptor_classes: tuple[Any, ...] = config(
        "interceptor.classes",
        (),
        importance=Importance.LOW,
        doc="ConsumerInterceptors, or classes of them, that see records and commits.",
    )
    consumer_timeout_ms: int = config(
        "consumer.timeout.ms",
        -1,
        at_least(-1),
        importance=Importance.LOW,
        doc="Iterating over a consumer ends after so long without a record; -1: never.",
    )

    def __post_init__(self) -> None:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InvalidConfigurationError(
                f"heartbeat.interval.ms ({self.heartbeat_interval_ms}) must be less than"
                f" session.timeout.ms ({self.session_timeout_ms})"
            )

    @property
    def is_read_committed(self) -> bool:
        return self.isolation_level == READ_COMMITTED
