"""The settings of a producer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkapy.clients.client_config import CommonClientConfig, parse_client_config
from kafkapy.clients.producer.partitioner import Partitioner, PartitionFunction
from kafkapy.clients.producer.serializers import Serializer
from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.config_def import (
    ConfigType,
    Importance,
    InvalidValueError,
    at_least,
    between,
    config,
    not_empty,
    one_of,
)
from kafkapy.common.errors import InvalidConfigurationError

_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}
_MAX_IN_FLIGHT_FOR_IDEMPOTENCE = 5
_MAX_INT = 2**31 - 1


def _serializer(value: Any) -> str | None:
    if value is None or callable(value) or hasattr(value, "serialize"):
        return None
    return "must be a function of the value, or an object with serialize(topic, headers, value)"


def _partitioner(value: Any) -> str | None:
    if value is None or callable(value) or hasattr(value, "partition"):
        return None
    return "must be a function of key, partitions and available ones, or a Partitioner"


def _gzip_level(value: int) -> str | None:
    return None if value == -1 or 1 <= value <= 9 else "must be -1 or between 1 and 9"


@dataclass(frozen=True, slots=True)
class ProducerConfig(CommonClientConfig):
    """What KafkaProducer takes as keyword arguments or properties.

    Ports: org.apache.kafka.clients.producer.ProducerConfig
    """

    key_serializer: Serializer | None = config(  # noqa: RUF009
        "key.serializer",
        None,
        _serializer,
        type=ConfigType.CLASS,
        importance=Importance.HIGH,
        doc="Turns keys into bytes: a function, or an object with serialize.",
    )
    value_serializer: Serializer | None = config(  # noqa: RUF009
        "value.serializer",
        None,
        _serializer,
        type=ConfigType.CLASS,
        importance=Importance.HIGH,
        doc="Turns values into bytes: a function, or an object with serialize.",
    )
    acks: str = config(
        "acks",
        "all",
        one_of(*_ACKS),
        importance=Importance.LOW,
        doc="Who must have a record before it counts as sent: nobody, the leader, or all in sync.",
    )
    retries: int = config(
        "retries",
        _MAX_INT,
        between(0, _MAX_INT),
        importance=Importance.HIGH,
        doc="How often a failed batch is sent again, within delivery.timeout.ms.",
    )
    delivery_timeout_ms: int = config(
        "delivery.timeout.ms",
        120_000,
        at_least(0),
        doc="A record is written or has failed after so long, whatever happens.",
    )
    batch_size: int = config(
        "batch.size", 16_384, at_least(0), doc="Batches of a partition are filled up to this size."
    )
    linger_ms: int = config(
        "linger.ms",
        0,
        at_least(0),
        type=ConfigType.LONG,
        doc="How long a batch that is not full waits for more records.",
    )
    buffer_memory: int = config(
        "buffer.memory",
        32 * 1024 * 1024,
        at_least(0),
        type=ConfigType.LONG,
        importance=Importance.HIGH,
        doc="Bytes of batches not written yet; when they are used up, send waits.",
    )
    max_block_ms: int = config(
        "max.block.ms",
        60_000,
        at_least(0),
        type=ConfigType.LONG,
        doc="How long send and the transaction calls wait for metadata, memory or the coordinator.",
    )
    max_request_size: int = config(
        "max.request.size",
        1024 * 1024,
        at_least(0),
        doc="The most that one request carries; a record larger than this is refused.",
    )
    max_in_flight_requests_per_connection: int = config(
        "max.in.flight.requests.per.connection",
        5,
        at_least(1),
        importance=Importance.LOW,
        doc="Requests sent to a broker before the first of them is answered.",
    )
    compression_type: str = config(
        "compression.type",
        "none",
        one_of(*(codec.codec_name for codec in CompressionType)),
        importance=Importance.HIGH,
        doc="The codec of batches.",
    )
    compression_gzip_level: int = config(
        "compression.gzip.level",
        -1,
        _gzip_level,
        doc="The level of gzip: 1 to 9, or -1 for its default.",
    )
    compression_lz4_level: int = config(
        "compression.lz4.level", 9, between(1, 17), doc="The level of lz4."
    )
    compression_zstd_level: int = config(
        "compression.zstd.level", 3, between(-131072, 22), doc="The level of zstd."
    )
    enable_idempotence: bool = config(
        "enable.idempotence",
        True,
        importance=Importance.LOW,
        doc="Retries neither double nor reorder records.",
    )
    transactional_id: str | None = config(
        "transactional.id",
        None,
        not_empty,
        importance=Importance.LOW,
        doc="The name under which transactions are made; it fences earlier producers of that name.",
    )
    transaction_timeout_ms: int = config(
        "transaction.timeout.ms",
        60_000,
        at_least(0),
        importance=Importance.LOW,
        doc="The coordinator aborts a transaction that takes longer.",
    )
    metadata_max_idle_ms: int = config(
        "metadata.max.idle.ms",
        300_000,
        at_least(5_000),
        type=ConfigType.LONG,
        importance=Importance.LOW,
        doc="A topic that is not written to for so long is forgotten.",
    )
    partitioner_class: Partitioner | PartitionFunction | None = config(  # noqa: RUF009
        "partitioner.class",
        None,
        _partitioner,
        type=ConfigType.CLASS,
        doc="Chooses partitions instead of the built-in rules.",
    )
    partitioner_ignore_keys: bool = config(
        "partitioner.ignore.keys",
        False,
        doc="Spread records with a key like those without one.",
    )
    interceptor_classes: tuple[Any, ...] = config(
        "interceptor.classes",
        (),
        importance=Importance.LOW,
        doc="ProducerInterceptors that see each record and its outcome.",
    )

    @property
    def required_acks(self) -> int:
        return _ACKS[self.acks]

    @property
    def compression(self) -> Compression:
        codec = CompressionType.for_name(self.compression_type)
        levels = {
            CompressionType.GZIP: self.compression_gzip_level,
            CompressionType.LZ4: self.compression_lz4_level,
            CompressionType.ZSTD: self.compression_zstd_level,
        }
        return Compression(codec, levels.get(codec))


def parse_producer_config(
    properties: Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> ProducerConfig:
    """Also checks what must go together, and adjusts what was not set to what was."""
    given = {name.replace(".", "_") for name in properties or {}} | set(keywords)
    parsed = parse_client_config(
        ProducerConfig,
        {name: _as_people_write(name, value) for name, value in (properties or {}).items()},
        {name: _as_people_write(name, value) for name, value in keywords.items()},
    )
    parsed = _with_idempotence_checked(parsed, given)
    shortest_ms = min(parsed.linger_ms + parsed.request_timeout_ms, _MAX_INT)
    if parsed.delivery_timeout_ms < shortest_ms:
        if "delivery_timeout_ms" in given:
            raise InvalidValueError(
                "delivery.timeout.ms",
                str(parsed.delivery_timeout_ms),
                f"must be at least linger.ms + request.timeout.ms, which is {shortest_ms}",
            )
        parsed = dataclasses.replace(parsed, delivery_timeout_ms=shortest_ms)
    return parsed


def _as_people_write(name: str, value: Any) -> Any:
    """acks is often given as a number, and no compression as None."""
    if name == "acks" and type(value) is int:
        return str(value)
    if name in ("compression_type", "compression.type") and value is None:
        return CompressionType.NONE.codec_name
    return value


def _with_idempotence_checked(parsed: ProducerConfig, given: set[str]) -> ProducerConfig:
    """Idempotence asked for forbids other settings; by default it gives way to them."""
    obstacles = []
    if parsed.retries == 0:
        obstacles.append("retries must not be 0")
    if parsed.required_acks != -1:
        obstacles.append("acks must be all")
    if parsed.max_in_flight_requests_per_connection > _MAX_IN_FLIGHT_FOR_IDEMPOTENCE:
        obstacles.append(
            "max.in.flight.requests.per.connection must be at most"
            f" {_MAX_IN_FLIGHT_FOR_IDEMPOTENCE}"
        )
    enabled = parsed.enable_idempotence
    if enabled and obstacles:
        if "enable_idempotence" in given:
            raise InvalidValueError("enable.idempotence", "true", ", ".join(obstacles))
        enabled = False
    if not enabled and parsed.transactional_id is not None:
        reason = f": {', '.join(obstacles)}" if obstacles else ""
        raise InvalidConfigurationError(f"transactional.id needs enable.idempotence{reason}")
    return dataclasses.replace(parsed, enable_idempotence=enabled)
