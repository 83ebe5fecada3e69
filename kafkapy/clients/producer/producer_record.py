"""A record to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kafkapy.common.record.record import Header

HeaderLike = Header | tuple[str, bytes | None]


class ProducerRecord(NamedTuple):
    """What interceptors see, and `send_record` takes. Key and value are not serialized yet.

    Ports: org.apache.kafka.clients.producer.ProducerRecord
    """

    topic: str
    value: Any = None
    key: Any = None
    headers: Sequence[HeaderLike] = ()
    partition: int | None = None
    timestamp_ms: int | None = None
