"""UpdateRaftVoter: change the endpoints or versions of a KRaft voter."""

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
    struct,
    uint16,
    uuid,
)


class UpdateRaftVoterRequest(
    Message, api_key=ApiKeys.UPDATE_RAFT_VOTER, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.UpdateRaftVoterRequestData"""

    class Listener(Struct):
        name: str = string("0+")
        host: str = string("0+")
        port: int = uint16("0+")

    class KRaftVersionFeature(Struct):
        min_supported_version: int = int16("0+")
        max_supported_version: int = int16("0+")

    cluster_id: str | None = string("0+", nullable="0+")
    current_leader_epoch: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: UUID = uuid("0+")
    listeners: list[Listener] = array("Listener", "0+")
    kraft_version_feature: KRaftVersionFeature = struct("KRaftVersionFeature", "0+")


class UpdateRaftVoterResponse(
    Message, api_key=ApiKeys.UPDATE_RAFT_VOTER, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.UpdateRaftVoterResponseData"""

    class CurrentLeader(Struct):
        leader_id: int = int32("0+", default=-1)
        leader_epoch: int = int32("0+", default=-1)
        host: str = string("0+")
        port: int = int32("0+")

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    current_leader: CurrentLeader = struct("CurrentLeader", "0+", tag=0)
