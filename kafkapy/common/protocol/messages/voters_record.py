from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    string,
    struct,
    uint16,
    uuid,
)


class VotersRecord(Message, versions="0", flexible="0+"):
    """The voters of a KRaft quorum, as a control record.

    Ports: org.apache.kafka.common.message.VotersRecord
    """

    class Endpoint(Struct):
        name: str = string("0+")
        host: str = string("0+")
        port: int = uint16("0+")

    class KRaftVersionFeature(Struct):
        min_supported_version: int = int16("0+")
        max_supported_version: int = int16("0+")

    class Voter(Struct):
        voter_id: int = int32("0+")
        voter_directory_id: UUID = uuid("0+")
        endpoints: list[VotersRecord.Endpoint] = array("Endpoint", "0+")
        kraft_version_feature: VotersRecord.KRaftVersionFeature = struct(
            "KRaftVersionFeature", "0+"
        )

    version: int = int16("0+")
    voters: list[Voter] = array("Voter", "0+")
