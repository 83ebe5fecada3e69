"""StopReplica: the controller tells a broker to stop, and perhaps delete, replicas."""

from __future__ import annotations

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
)


class StopReplicaRequest(Message, api_key=ApiKeys.STOP_REPLICA, versions="0-4", flexible="2+"):
    """Ports: org.apache.kafka.common.message.StopReplicaRequestData"""

    class StopReplicaPartitionV0(Struct):
        topic_name: str = string("0")
        partition_index: int = int32("0")

    class StopReplicaTopicV1(Struct):
        name: str = string("1-2")
        partition_indexes: list[int] = array(int32, "1-2")

    class StopReplicaPartitionState(Struct):
        partition_index: int = int32("3+")
        leader_epoch: int = int32("3+", default=-1)
        delete_partition: bool = bool_("3+")

    class StopReplicaTopicState(Struct):
        topic_name: str = string("3+")
        partition_states: list[StopReplicaRequest.StopReplicaPartitionState] = array(
            "StopReplicaPartitionState", "3+"
        )

    controller_id: int = int32("0+")
    is_kraft_controller: bool = bool_("4+")
    controller_epoch: int = int32("0+")
    broker_epoch: int = int64("1+", default=-1, ignorable=True)
    delete_partitions: bool = bool_("0-2")
    ungrouped_partitions: list[StopReplicaPartitionV0] = array("StopReplicaPartitionV0", "0")
    topics: list[StopReplicaTopicV1] = array("StopReplicaTopicV1", "1-2")
    topic_states: list[StopReplicaTopicState] = array("StopReplicaTopicState", "3+")


class StopReplicaResponse(Message, api_key=ApiKeys.STOP_REPLICA, versions="0-4", flexible="2+"):
    """Ports: org.apache.kafka.common.message.StopReplicaResponseData"""

    class StopReplicaPartitionError(Struct):
        topic_name: str = string("0+")
        partition_index: int = int32("0+")
        error_code: int = int16("0+")

    error_code: int = int16("0+")
    partition_errors: list[StopReplicaPartitionError] = array("StopReplicaPartitionError", "0+")
