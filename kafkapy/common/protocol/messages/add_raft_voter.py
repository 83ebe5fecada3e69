"""AddRaftVoter: add a voter to the KRaft quorum."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    string,
    uint16,
    uuid,
)


class AddRaftVoterRequest(Message, api_key=ApiKeys.ADD_RAFT_VOTER, versions="0", flexible="0+"):
    """Ports: org.apache.kafka.common.message.AddRaftVoterRequestData"""

    class Listener(Struct):
        name: str = string("0+")
        host: str = string("0+")
        port: int = uint16("0+")

    cluster_id: str | None = string("0+", nullable="0+")
    timeout_ms: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: UUID = uuid("0+")
    listeners: list[Listener] = array("Listener", "0+")


class AddRaftVoterResponse(Message, api_key=ApiKeys.ADD_RAFT_VOTER, versions="0", flexible="0+"):
    """Ports: org.apache.kafka.common.message.AddRaftVoterResponseData"""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)
