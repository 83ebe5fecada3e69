from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ConsumerGroupTargetAssignmentMemberKey(Message, versions="7", flexible="none"):
    """Key of a member's target assignment in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberKey
    """

    group_id: str = string("7")
    member_id: str = string("7")
