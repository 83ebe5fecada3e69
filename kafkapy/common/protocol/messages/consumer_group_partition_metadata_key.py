from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class ConsumerGroupPartitionMetadataKey(Message, versions="4", flexible="none"):
    """Key of the topics that a group subscribes to, in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupPartitionMetadataKey
    """

    group_id: str = string("4")
