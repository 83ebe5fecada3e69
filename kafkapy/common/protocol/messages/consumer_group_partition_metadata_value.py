from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.schema import Message, Struct, array, int32, string, uuid


class ConsumerGroupPartitionMetadataValue(Message, versions="0", flexible="0+"):
    """The topics that a group subscribes to, in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataValue
    """

    class PartitionMetadata(Struct):
        partition: int = int32("0+")
        racks: list[str] = array(string, "0+")

    class TopicMetadata(Struct):
        topic_id: UUID = uuid("0+")
        topic_name: str = string("0+")
        num_partitions: int = int32("0+")
        partition_metadata: list[ConsumerGroupPartitionMetadataValue.PartitionMetadata] = array(
            "PartitionMetadata", "0+"
        )

    topics: list[TopicMetadata] = array("TopicMetadata", "0+")
