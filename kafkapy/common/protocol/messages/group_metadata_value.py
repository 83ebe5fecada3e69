from __future__ import annotations

from kafkapy.common.protocol.schema import Message, Struct, array, bytes_, int32, int64, string


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    """A group's state in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.GroupMetadataValue
    """

    class MemberMetadata(Struct):
        member_id: str = string("0+")
        group_instance_id: str | None = string("3+", nullable="3+", default=None, ignorable=True)
        client_id: str = string("0+")
        client_host: str = string("0+")
        rebalance_timeout: int = int32("1+", default=-1, ignorable=True)
        session_timeout: int = int32("0+")
        subscription: bytes = bytes_("0+")
        assignment: bytes = bytes_("0+")

    protocol_type: str = string("0+")
    generation: int = int32("0+")
    protocol: str | None = string("0+", nullable="0+")
    leader: str | None = string("0+", nullable="0+")
    current_state_timestamp: int = int64("2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = array("MemberMetadata", "0+")
