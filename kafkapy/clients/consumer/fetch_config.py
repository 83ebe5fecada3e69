"""What fetching needs of a consumer's settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.common.record.record import Header

# topic, headers and bytes to whatever the application wants
Deserialize = Callable[[str, tuple[Header, ...], bytes], Any]


@dataclass(frozen=True, slots=True)
class FetchConfig:
    """Ports: org.apache.kafka.clients.consumer.internals.FetchConfig"""

    min_bytes: int = 1
    max_bytes: int = 50 * 1024 * 1024
    max_wait_ms: int = 500
    fetch_size: int = 1024 * 1024
    max_poll_records: int = 500
    check_crcs: bool = True
    client_rack_id: str = ""
    read_committed: bool = False
    preferred_read_replica_ms: int = 300_000
    key_deserializer: Deserialize | None = None
    value_deserializer: Deserialize | None = None

    @staticmethod
    def from_consumer(config: ConsumerConfig) -> FetchConfig:
        return FetchConfig(
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            max_wait_ms=config.fetch_max_wait_ms,
            fetch_size=config.max_partition_fetch_bytes,
            max_poll_records=config.max_poll_records,
            check_crcs=config.check_crcs,
            client_rack_id=config.client_rack,
            read_committed=config.is_read_committed,
            preferred_read_replica_ms=config.metadata_max_age_ms,
            key_deserializer=_deserialize(config.key_deserializer),
            value_deserializer=_deserialize(config.value_deserializer),
        )


def _deserialize(deserializer: Any) -> Deserialize | None:
    """Of a plain function of the bytes, or of an object with a `deserialize` method."""
    if deserializer is None:
        return None
    method = getattr(deserializer, "deserialize", None)
    if method is not None:
        return lambda topic, headers, data: method(topic, headers, data)
    return lambda topic, headers, data: deserializer(data)
