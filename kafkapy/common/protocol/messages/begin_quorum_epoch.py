"""BeginQuorumEpoch: a new KRaft leader announces its epoch."""

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


class BeginQuorumEpochRequest(
    Message, api_key=ApiKeys.BEGIN_QUORUM_EPOCH, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.BeginQuorumEpochRequestData"""

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        voter_directory_id: UUID = uuid("1+", ignorable=True)
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+")

    class TopicData(Struct):
        topic_name: str = string("0+")
        partitions: list[BeginQuorumEpochRequest.PartitionData] = array("PartitionData", "0+")

    class LeaderEndpoint(Struct):
        name: str = string("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    cluster_id: str | None = string("0+", nullable="0+", default=None)
    voter_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[TopicData] = array("TopicData", "0+")
    leader_endpoints: list[LeaderEndpoint] = array("LeaderEndpoint", "1+", ignorable=True)


class BeginQuorumEpochResponse(
    Message, api_key=ApiKeys.BEGIN_QUORUM_EPOCH, versions="0-1", flexible="1+"
):
    """Ports: org.apache.kafka.common.message.BeginQuorumEpochResponseData"""

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+")

    class TopicData(Struct):
        topic_name: str = string("0+")
        partitions: list[BeginQuorumEpochResponse.PartitionData] = array("PartitionData", "0+")

    class NodeEndpoint(Struct):
        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    error_code: int = int16("0+")
    topics: list[TopicData] = array("TopicData", "0+")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", "1+", tag=0)
