from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ConsumerGroupCurrentMemberAssignmentKey(Message, versions="8", flexible="none"):
    """Key of a member's current assignment in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupCurrentMemberAssignmentKey
    """

    group_id: str = string("8")
    member_id: str = string("8")
