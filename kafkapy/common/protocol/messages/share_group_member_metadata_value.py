from __future__ import annotations

from kafkapy.common.protocol.schema import Message, array, string


class ShareGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    """A share group member's subscription in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.ShareGroupMemberMetadataValue
    """

    rack_id: str | None = string("0+", nullable="0+")
    client_id: str = string("0+")
    client_host: str = string("0+")
    subscribed_topic_names: list[str] = array(string, "0+")
