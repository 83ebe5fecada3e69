from __future__ import annotations

from kafkapy.common.protocol.schema import Message, int32


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    """A group's epoch in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupMetadataValue
    """

    epoch: int = int32("0+")
