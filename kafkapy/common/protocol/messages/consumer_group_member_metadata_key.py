from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ConsumerGroupMemberMetadataKey(Message, versions="5", flexible="none"):
    """Key of a member's subscription in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataKey
    """

    group_id: str = string("5")
    member_id: str = string("5")
