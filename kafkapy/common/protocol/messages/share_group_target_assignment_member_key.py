from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ShareGroupTargetAssignmentMemberKey(Message, versions="13", flexible="none"):
    """Key of a share group member's target assignment in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberKey
    """

    group_id: str = string("13")
    member_id: str = string("13")
