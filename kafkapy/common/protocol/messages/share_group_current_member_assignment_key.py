from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ShareGroupCurrentMemberAssignmentKey(Message, versions="14", flexible="none"):
    """Key of a share group member's current assignment in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupCurrentMemberAssignmentKey
    """

    group_id: str = string("14")
    member_id: str = string("14")
