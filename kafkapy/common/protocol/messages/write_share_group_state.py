"""WriteShareGroupState: change the stored state of share partitions."""

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


class WriteShareGroupStateRequest(
    Message, api_key=ApiKeys.WRITE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.WriteShareGroupStateRequestData"""

    class StateBatch(Struct):
        first_offset: int = int64("0+")
        last_offset: int = int64("0+")
        delivery_state: int = int8("0+")
        delivery_count: int = int16("0+")

    class PartitionData(Struct):
        partition: int = int32("0+")
        state_epoch: int = int32("0+")
        leader_epoch: int = int32("0+")
        start_offset: int = int64("0+")
        state_batches: list[WriteShareGroupStateRequest.StateBatch] = array("StateBatch", "0+")

    class WriteStateData(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[WriteShareGroupStateRequest.PartitionData] = array("PartitionData", "0+")

    group_id: str = string("0+")
    topics: list[WriteStateData] = array("WriteStateData", "0+")


class WriteShareGroupStateResponse(
    Message, api_key=ApiKeys.WRITE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.WriteShareGroupStateResponseData"""

    class PartitionResult(Struct):
        partition: int = int32("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+", default=None)

    class WriteStateResult(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[WriteShareGroupStateResponse.PartitionResult] = array(
            "PartitionResult", "0+"
        )

    results: list[WriteStateResult] = array("WriteStateResult", "0+")
