from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ShareGroupMemberMetadataKey(Message, versions="10", flexible="none"):
    """Key of a share group member's subscription in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupMemberMetadataKey
    """

    group_id: str = string("10")
    member_id: str = string("10")
