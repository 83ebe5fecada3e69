from __future__ import annotations

from kafkapy.common.protocol.schema import Message, int32


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    """A target assignment's epoch in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMetadataValue
    """

    assignment_epoch: int = int32("0+")
