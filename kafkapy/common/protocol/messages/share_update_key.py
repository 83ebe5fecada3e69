from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.schema import Message, int32, string, uuid


class ShareUpdateKey(Message, versions="1", flexible="none"):
    """Key of a change to a share partition in `__share_group_state`.

    Ports: org.apache.kafka.coordinator.share.generated.ShareUpdateKey
    """

    group_id: str = string("1")
    topic_id: UUID = uuid("1")
    partition: int = int32("1")
