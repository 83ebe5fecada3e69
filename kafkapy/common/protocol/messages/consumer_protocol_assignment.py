from __future__ import annotations

from kafkapy.common.protocol.schema import Message, Struct, array, bytes_, int32, string


class ConsumerProtocolAssignment(Message, versions="0-3", flexible="none"):
    """What the group leader assigns to one consumer, as opaque bytes in SyncGroup.

    Ports: org.apache.kafka.common.message.ConsumerProtocolAssignment
    """

    class TopicPartition(Struct):
        topic: str = string("0+")
        partitions: list[int] = array(int32, "0+")

    assigned_partitions: list[TopicPartition] = array("TopicPartition", "0+")
    user_data: bytes | None = bytes_("0+", nullable="0+", default=None)
