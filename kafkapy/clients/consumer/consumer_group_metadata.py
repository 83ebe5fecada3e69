"""Who a consumer is in its group, for producers that commit offsets in a transaction."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_GENERATION_ID = -1
UNKNOWN_MEMBER_ID = ""


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """A membership as of one generation. Immutable.

    Ports: org.apache.kafka.clients.consumer.ConsumerGroupMetadata
    """

    group_id: str
    generation_id: int = UNKNOWN_GENERATION_ID
    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None
