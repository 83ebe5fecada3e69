from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ConsumerGroupMetadataKey(Message, versions="3", flexible="none"):
    """Key of a group's epoch in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataKey
    """

    group_id: str = string("3")
