from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ShareGroupMetadataKey(Message, versions="11", flexible="none"):
    """Key of a share group's epoch in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupMetadataKey
    """

    group_id: str = string("11")
