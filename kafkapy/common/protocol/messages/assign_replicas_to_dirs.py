"""AssignReplicasToDirs: a broker tells the KRaft controller the log directory of each replica."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, int64, uuid


class AssignReplicasToDirsRequest(
    Message, api_key=ApiKeys.ASSIGN_REPLICAS_TO_DIRS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AssignReplicasToDirsRequestData"""

    class PartitionData(Struct):
        partition_index: int = int32("0+")

    class TopicData(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[AssignReplicasToDirsRequest.PartitionData] = array("PartitionData", "0+")

    class DirectoryData(Struct):
        id: UUID = uuid("0+")
        topics: list[AssignReplicasToDirsRequest.TopicData] = array("TopicData", "0+")

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    directories: list[DirectoryData] = array("DirectoryData", "0+")


class AssignReplicasToDirsResponse(
    Message, api_key=ApiKeys.ASSIGN_REPLICAS_TO_DIRS, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AssignReplicasToDirsResponseData"""

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")

    class TopicData(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[AssignReplicasToDirsResponse.PartitionData] = array("PartitionData", "0+")

    class DirectoryData(Struct):
        id: UUID = uuid("0+")
        topics: list[AssignReplicasToDirsResponse.TopicData] = array("TopicData", "0+")

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    directories: list[DirectoryData] = array("DirectoryData", "0+")
