from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.schema import Message, Struct, array, int32, string, uuid


class ShareGroupStatePartitionMetadataValue(Message, versions="0", flexible="0+"):
    """A share group's partitions with stored state, in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupStatePartitionMetadataValue
    """

    class TopicPartitionsInfo(Struct):
        topic_id: UUID = uuid("0+")
        topic_name: str = string("0+")
        partitions: list[int] = array(int32, "0+")

    class TopicInfo(Struct):
        topic_id: UUID = uuid("0+")
        topic_name: str = string("0+")

    initialized_topics: list[TopicPartitionsInfo] = array("TopicPartitionsInfo", "0+")
    deleting_topics: list[TopicInfo] = array("TopicInfo", "0+")
