from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, uuid


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    """The election of a KRaft leader, as a control record.

    Ports: org.apache.kafka.common.message.LeaderChangeMessage
    """

    class Voter(Struct):
        voter_id: int = int32("0+")
        voter_directory_id: UUID = uuid("1+")

    version: int = int16("0+")
    leader_id: int = int32("0+")
    voters: list[Voter] = array("Voter", "0+")
    granting_voters: list[Voter] = array("Voter", "0+")
