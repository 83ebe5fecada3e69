from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ConsumerGroupTargetAssignmentMetadataKey(Message, versions="6", flexible="none"):
    """Key of a target assignment's epoch in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMetadataKey
    """

    group_id: str = string("6")
