"""Settings of the group coordinator."""

from dataclasses import dataclass

from kafkapy.common.compression import CompressionType
from kafkapy.common.config_def import ConfigType, Importance, at_least, between, config

_MAX_INT = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class GroupCoordinatorConfig:
    """Ports: org.apache.kafka.coordinator.group.GroupCoordinatorConfig"""

    group_min_session_timeout_ms: int = config(
        "group.min.session.timeout.ms",
        6_000,
        at_least(0),
        doc="The shortest session time-out that a member may ask for.",
    )
    group_max_session_timeout_ms: int = config(
        "group.max.session.timeout.ms",
        1_800_000,
        at_least(0),
        doc="The longest session time-out that a member may ask for.",
    )
    group_initial_rebalance_delay_ms: int = config(
        "group.initial.rebalance.delay.ms",
        3_000,
        at_least(0),
        doc="How long an empty group waits for more members after the first one has joined.",
    )
    group_max_size: int = config(
        "group.max.size",
        _MAX_INT,
        at_least(1),
        doc="The most members a group may have.",
    )
    offset_metadata_max_bytes: int = config(
        "offset.metadata.max.bytes",
        4_096,
        at_least(0),
        importance=Importance.HIGH,
        doc="The largest metadata that may be committed with an offset.",
    )
    offsets_load_buffer_size: int = config(
        "offsets.load.buffer.size",
        5 * 1024 * 1024,
        at_least(1),
        importance=Importance.HIGH,
        doc="How much is read at a time when groups and offsets are loaded.",
    )
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
    offsets_topic_compression_codec: int = config(
        "offsets.topic.compression.codec",
        CompressionType.NONE.value,
        between(min(CompressionType).value, max(CompressionType).value),
        importance=Importance.HIGH,
        doc="The number of the codec that records of __consumer_offsets are compressed with.",
    )
    offsets_retention_minutes: int = config(
        "offsets.retention.minutes",
        7 * 24 * 60,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long offsets are kept after their group became empty or, without members or "
        "subscription, after the commit.",
    )
    offsets_retention_check_interval_ms: int = config(
        "offsets.retention.check.interval.ms",
        600_000,
        at_least(1),
        importance=Importance.HIGH,
        doc="How often expired offsets are looked for.",
    )
    offsets_commit_timeout_ms: int = config(
        "offsets.commit.timeout.ms",
        5_000,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long a commit waits for the replicas of __consumer_offsets.",
    )
    offsets_commit_required_acks: int = config(
        "offsets.commit.required.acks",
        -1,
        between(-1, 1),
        type=ConfigType.SHORT,
        importance=Importance.HIGH,
        doc="The acks a commit is stored with.",
    )

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * 60_000

    def offsets_topic_configs(self) -> dict[str, str]:
        """What __consumer_offsets is created with."""
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(self.offsets_topic_segment_bytes),
        }
