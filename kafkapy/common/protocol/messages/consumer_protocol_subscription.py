from __future__ import annotations

from kafkapy.common.protocol.schema import Message, Struct, array, bytes_, int32, string


class ConsumerProtocolSubscription(Message, versions="0-3", flexible="none"):
    """What one consumer subscribes to, as opaque bytes in JoinGroup.

    Ports: org.apache.kafka.common.message.ConsumerProtocolSubscription
    """

    class TopicPartition(Struct):
        topic: str = string("1+")
        partitions: list[int] = array(int32, "1+")

    topics: list[str] = array(string, "0+")
    user_data: bytes | None = bytes_("0+", nullable="0+", default=None)
    owned_partitions: list[TopicPartition] = array("TopicPartition", "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
