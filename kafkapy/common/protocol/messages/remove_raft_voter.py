"""RemoveRaftVoter: remove a voter from the KRaft quorum."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, int16, int32, string, uuid


class RemoveRaftVoterRequest(
    Message, api_key=ApiKeys.REMOVE_RAFT_VOTER, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.RemoveRaftVoterRequestData"""

    cluster_id: str | None = string("0+", nullable="0+")
    voter_id: int = int32("0+")
    voter_directory_id: UUID = uuid("0+")


class RemoveRaftVoterResponse(
    Message, api_key=ApiKeys.REMOVE_RAFT_VOTER, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.RemoveRaftVoterResponseData"""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)
