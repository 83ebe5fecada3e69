from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.schema import Message, int32, string, uuid


class ShareSnapshotKey(Message, versions="0", flexible="none"):
    """Key of the full state of a share partition in `__share_group_state`.

    Ports: org.apache.kafka.coordinator.share.generated.ShareSnapshotKey
    """

    group_id: str = string("0")
    topic_id: UUID = uuid("0")
    partition: int = int32("0")
