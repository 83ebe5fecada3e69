"""LeaderAndIsr: the controller tells a broker which replicas lead and which follow."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class LeaderAndIsrRequest(Message, api_key=ApiKeys.LEADER_AND_ISR, versions="0-7", flexible="4+"):
    """Ports: org.apache.kafka.common.message.LeaderAndIsrRequestData"""

    class LeaderAndIsrPartitionState(Struct):
        topic_name: str = string("0-1", ignorable=True)
        partition_index: int = int32("0+")
        controller_epoch: int = int32("0+")
        leader: int = int32("0+")
        leader_epoch: int = int32("0+")
        isr: list[int] = array(int32, "0+")
        partition_epoch: int = int32("0+")
        replicas: list[int] = array(int32, "0+")
        adding_replicas: list[int] = array(int32, "3+", ignorable=True)
        removing_replicas: list[int] = array(int32, "3+", ignorable=True)
        is_new: bool = bool_("1+", ignorable=True)
        leader_recovery_state: int = int8("6+")

    class LeaderAndIsrTopicState(Struct):
        topic_name: str = string("2+")
        topic_id: UUID = uuid("5+", ignorable=True)
        partition_states: list[LeaderAndIsrRequest.LeaderAndIsrPartitionState] = array(
            "LeaderAndIsrPartitionState", "2+"
        )

    class LeaderAndIsrLiveLeader(Struct):
        broker_id: int = int32("0+")
        host_name: str = string("0+")
        port: int = int32("0+")

    controller_id: int = int32("0+")
    is_kraft_controller: bool = bool_("7+")
    controller_epoch: int = int32("0+")
    broker_epoch: int = int64("2+", default=-1, ignorable=True)
    type: int = int8("5+")
    ungrouped_partition_states: list[LeaderAndIsrPartitionState] = array(
        "LeaderAndIsrPartitionState", "0-1"
    )
    topic_states: list[LeaderAndIsrTopicState] = array("LeaderAndIsrTopicState", "2+")
    live_leaders: list[LeaderAndIsrLiveLeader] = array("LeaderAndIsrLiveLeader", "0+")


class LeaderAndIsrResponse(Message, api_key=ApiKeys.LEADER_AND_ISR, versions="0-7", flexible="4+"):
    """Ports: org.apache.kafka.common.message.LeaderAndIsrResponseData"""

    class LeaderAndIsrPartitionError(Struct):
        topic_name: str = string("0-4", ignorable=True)
        partition_index: int = int32("0+")
        error_code: int = int16("0+")

    class LeaderAndIsrTopicError(Struct):
        topic_id: UUID = uuid("5+")
        partition_errors: list[LeaderAndIsrResponse.LeaderAndIsrPartitionError] = array(
            "LeaderAndIsrPartitionError", "5+"
        )

    error_code: int = int16("0+")
    partition_errors: list[LeaderAndIsrPartitionError] = array("LeaderAndIsrPartitionError", "0-4")
    topics: list[LeaderAndIsrTopicError] = array("LeaderAndIsrTopicError", "5+")
