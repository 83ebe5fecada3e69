"""EndQuorumEpoch: a KRaft leader resigns."""

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


class EndQuorumEpochRequest(
    Message, api_key=ApiKeys.END_QUORUM_EPOCH, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.EndQuorumEpochRequestData"""

    class ReplicaInfo(Struct):
        candidate_id: int = int32("1+")
        candidate_directory_id: UUID = uuid("1+")

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+")
        preferred_successors: list[int] = array(int32, "0", ignorable=True)
        preferred_candidates: list[EndQuorumEpochRequest.ReplicaInfo] = array(
            "ReplicaInfo", "1+", ignorable=True
        )

    class TopicData(Struct):
        topic_name: str = string("0+")
        partitions: list[EndQuorumEpochRequest.PartitionData] = array("PartitionData", "0+")

    class LeaderEndpoint(Struct):
        name: str = string("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    cluster_id: str | None = string("0+", nullable="0+", default=None)
    topics: list[TopicData] = array("TopicData", "0+")
    leader_endpoints: list[LeaderEndpoint] = array("LeaderEndpoint", "1+", ignorable=True)


class EndQuorumEpochResponse(
    Message, api_key=ApiKeys.END_QUORUM_EPOCH, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.EndQuorumEpochResponseData"""

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+")

    class TopicData(Struct):
        topic_name: str = string("0+")
        partitions: list[EndQuorumEpochResponse.PartitionData] = array("PartitionData", "0+")

    class NodeEndpoint(Struct):
        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    error_code: int = int16("0+")
    topics: list[TopicData] = array("TopicData", "0+")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", "1+", tag=0)
