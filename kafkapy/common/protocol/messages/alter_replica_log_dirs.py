"""AlterReplicaLogDirs: move replicas between the log directories of a broker."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string


class AlterReplicaLogDirsRequest(
    Message, api_key=ApiKeys.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.AlterReplicaLogDirsRequestData"""

    class AlterReplicaLogDirTopic(Struct):
        name: str = string("0+")
        partitions: list[int] = array(int32, "0+")

    class AlterReplicaLogDir(Struct):
        path: str = string("0+")
        topics: list[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic] = array(
            "AlterReplicaLogDirTopic", "0+"
        )

    dirs: list[AlterReplicaLogDir] = array("AlterReplicaLogDir", "0+")


class AlterReplicaLogDirsResponse(
    Message, api_key=ApiKeys.ALTER_REPLICA_LOG_DIRS, versions="0-2", flexible="2+"
):
    """Ports: org.apache.kafka.common.message.AlterReplicaLogDirsResponseData"""

    class AlterReplicaLogDirPartitionResult(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")

    class AlterReplicaLogDirTopicResult(Struct):
        topic_name: str = string("0+")
        partitions: list[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult] = array(
            "AlterReplicaLogDirPartitionResult", "0+"
        )

    throttle_time_ms: int = int32("0+")
    results: list[AlterReplicaLogDirTopicResult] = array("AlterReplicaLogDirTopicResult", "0+")
