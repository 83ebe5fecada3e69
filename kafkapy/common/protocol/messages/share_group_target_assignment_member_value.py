from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.schema import Message, Struct, array, int32, uuid


class ShareGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    """A share group member's target assignment in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupTargetAssignmentMemberValue
    """

    class TopicPartition(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[int] = array(int32, "0+")

    topic_partitions: list[TopicPartition] = array("TopicPartition", "0+")
