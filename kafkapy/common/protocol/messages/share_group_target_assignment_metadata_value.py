from __future__ import annotations

from kafkapy.common.protocol.schema import Message, int32


class ShareGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    """A share group's target assignment epoch in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMetadataValue
    """

    assignment_epoch: int = int32("0+")
