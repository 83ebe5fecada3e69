from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ShareGroupTargetAssignmentMetadataKey(Message, versions="12", flexible="none"):
    """Key of a share group's target assignment epoch in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMetadataKey
    """

    group_id: str = string("12")
