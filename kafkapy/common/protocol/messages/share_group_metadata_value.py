from __future__ import annotations

from kafkapy.common.protocol.schema import Message, int32


class ShareGroupMetadataValue(Message, versions="0", flexible="0+"):
    """A share group's epoch in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupMetadataValue
    """

    epoch: int = int32("0+")
