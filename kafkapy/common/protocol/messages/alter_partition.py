"""AlterPartition: a leader proposes new in-sync replicas to the controller."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    string,
    uuid,
)


class AlterPartitionRequest(
    Message, api_key=ApiKeys.ALTER_PARTITION, versions="0-3", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AlterPartitionRequestData"""

    class BrokerState(Struct):
        broker_id: int = int32("3+")
        broker_epoch: int = int64("3+", default=-1)

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        leader_epoch: int = int32("0+")
        new_isr: list[int] = array(int32, "0-2")
        new_isr_with_epochs: list[AlterPartitionRequest.BrokerState] = array("BrokerState", "3+")
        leader_recovery_state: int = int8("1+")
        partition_epoch: int = int32("0+")

    class TopicData(Struct):
        topic_name: str = string("0-1", ignorable=True)
        topic_id: UUID = uuid("2+", ignorable=True)
        partitions: list[AlterPartitionRequest.PartitionData] = array("PartitionData", "0+")

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    topics: list[TopicData] = array("TopicData", "0+")


class AlterPartitionResponse(
    Message, api_key=ApiKeys.ALTER_PARTITION, versions="0-3", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.AlterPartitionResponseData"""

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+")
        isr: list[int] = array(int32, "0+")
        leader_recovery_state: int = int8("1+", ignorable=True)
        partition_epoch: int = int32("0+")

    class TopicData(Struct):
        topic_name: str = string("0-1", ignorable=True)
        topic_id: UUID = uuid("2+", ignorable=True)
        partitions: list[AlterPartitionResponse.PartitionData] = array("PartitionData", "0+")

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    topics: list[TopicData] = array("TopicData", "0+")
