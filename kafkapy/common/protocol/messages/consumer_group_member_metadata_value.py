from __future__ import annotations

from kafkapy.common.protocol.schema import Message, Struct, array, bytes_, int32, string, struct


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    """A member's subscription in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ConsumerGroupMemberMetadataValue
    """

    class ClassicProtocol(Struct):
        name: str = string("0+")
        metadata: bytes = bytes_("0+")

    class ClassicMemberMetadata(Struct):
        session_timeout_ms: int = int32("0+")
        supported_protocols: list[ConsumerGroupMemberMetadataValue.ClassicProtocol] = array(
            "ClassicProtocol", "0+"
        )

    instance_id: str | None = string("0+", nullable="0+")
    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")
    subscribed_topic_regex: str | None = string("0+", nullable="0+")
    rebalance_timeout_ms: int = int32("0+", default=-1)
    server_assignor: str | None = string("0+", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = struct(
        "ClassicMemberMetadata", "0+", nullable="0+", default=None, tag=0
    )
