from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.schema import Message, Struct, array, int8, int32, uuid


class ShareGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    """A share group member's current assignment in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupCurrentMemberAssignmentValue
    """

    class TopicPartitions(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[int] = array(int32, "0+")

    member_epoch: int = int32("0+")
    previous_member_epoch: int = int32("0+")
    state: int = int8("0+")
    assigned_partitions: list[TopicPartitions] = array("TopicPartitions", "0+")
