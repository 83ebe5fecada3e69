from __future__ import annotations

from kafkapy.common.protocol.schema import Message, string


class GroupMetadataKey(Message, versions="2", flexible="none"):
    """Key of a group's state in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.GroupMetadataKey
    """

    group: str = string("2")
