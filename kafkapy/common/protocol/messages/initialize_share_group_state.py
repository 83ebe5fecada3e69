"""InitializeShareGroupState: create the stored state of share partitions."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, int64, string, uuid


class InitializeShareGroupStateRequest(
    Message, api_key=ApiKeys.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.InitializeShareGroupStateRequestData"""

    class PartitionData(Struct):
        partition: int = int32("0+")
        state_epoch: int = int32("0+")
        start_offset: int = int64("0+")

    class InitializeStateData(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[InitializeShareGroupStateRequest.PartitionData] = array(
            "PartitionData", "0+"
        )

    group_id: str = string("0+")
    topics: list[InitializeStateData] = array("InitializeStateData", "0+")


class InitializeShareGroupStateResponse(
    Message, api_key=ApiKeys.INITIALIZE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.InitializeShareGroupStateResponseData"""

    class PartitionResult(Struct):
        partition: int = int32("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+", default=None)

    class InitializeStateResult(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[InitializeShareGroupStateResponse.PartitionResult] = array(
            "PartitionResult", "0+"
        )

    results: list[InitializeStateResult] = array("InitializeStateResult", "0+")
