"""Settings of the group coordinator."""

from dataclasses import dataclass

from kafkapy.common.config_def import ConfigType, Importance, at_least, config


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfig:
    """Ports: org.apache.kafka.coordinator.group.GroupCoordinatorConfig"""

    offsets_topic_num_partitions: int = config(
        "offsets.topic.num.partitions",
        50,
        at_least(1),
        importance=Importance.HIGH,
        doc="Partitions of __consumer_offsets; not to be changed once the topic is there.",
    )
    offsets_topic_replication_factor: int = config(
        "offsets.topic.replication.factor",
        3,
        at_least(1),
        type=ConfigType.SHORT,
        importance=Importance.HIGH,
        doc="Replicas of __consumer_offsets. With fewer brokers than this it cannot be created.",
    )
    offsets_topic_segment_bytes: int = config(
        "offsets.topic.segment.bytes",
        100 * 1024 * 1024,
        at_least(1),
        importance=Importance.HIGH,
        doc="Segment size of __consumer_offsets: small, so that compaction and loading are quick.",
    )

    def offsets_topic_configs(self) -> dict[str, str]:
        """What __consumer_offsets is created with."""
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(self.offsets_topic_segment_bytes),
        }
