from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ShareGroupStatePartitionMetadataKey(Message, versions="15", flexible="none"):
    """Key of a share group's partitions with stored state, in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupStatePartitionMetadataKey
    """

    group_id: str = string("15")
