"""Vote: a KRaft candidate asks for votes."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class VoteRequest(Message, api_key=ApiKeys.VOTE, versions="0-1", flexible="0+"):
    """Ports: org.apache.kafka.common.message.VoteRequestData"""

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        candidate_epoch: int = int32("0+")
        candidate_id: int = int32("0+")
        candidate_directory_id: UUID = uuid("1+", ignorable=True)
        voter_directory_id: UUID = uuid("1+", ignorable=True)
        last_offset_epoch: int = int32("0+")
        last_offset: int = int64("0+")

    class TopicData(Struct):
        topic_name: str = string("0+")
        partitions: list[VoteRequest.PartitionData] = array("PartitionData", "0+")

    cluster_id: str | None = string("0+", nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[TopicData] = array("TopicData", "0+")


class VoteResponse(Message, api_key=ApiKeys.VOTE, versions="0-1", flexible="0+"):
    """Ports: org.apache.kafka.common.message.VoteResponseData"""

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+")
        vote_granted: bool = bool_("0+")

    class TopicData(Struct):
        topic_name: str = string("0+")
        partitions: list[VoteResponse.PartitionData] = array("PartitionData", "0+")

    class NodeEndpoint(Struct):
        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    error_code: int = int16("0+")
    topics: list[TopicData] = array("TopicData", "0+")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", "1+", tag=0)
