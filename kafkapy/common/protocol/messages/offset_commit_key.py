from __future__ import annotations

from kafkapy.common.protocol.schema import Message, int32, string


class OffsetCommitKey(Message, versions="0-1", flexible="none"):
    """Key of a committed offset in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.OffsetCommitKey
    """

    group: str = string("0-1")
    topic: str = string("0-1")
    partition: int = int32("0-1")
