from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ShareGroupPartitionMetadataKey(Message, versions="9", flexible="none"):
    """Key of the topics that a share group subscribes to, in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupPartitionMetadataKey
    """

    group_id: str = string("9")
