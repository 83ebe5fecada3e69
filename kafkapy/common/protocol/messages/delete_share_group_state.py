"""DeleteShareGroupState: delete the stored state of share partitions."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteShareGroupStateRequest(
    Message, api_key=ApiKeys.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.DeleteShareGroupStateRequestData"""

    class PartitionData(Struct):
        partition: int = int32("0+")

    class DeleteStateData(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[DeleteShareGroupStateRequest.PartitionData] = array("PartitionData", "0+")

    group_id: str = string("0+")
    topics: list[DeleteStateData] = array("DeleteStateData", "0+")


class DeleteShareGroupStateResponse(
    Message, api_key=ApiKeys.DELETE_SHARE_GROUP_STATE, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.DeleteShareGroupStateResponseData"""

    class PartitionResult(Struct):
        partition: int = int32("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+", default=None)

    class DeleteStateResult(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[DeleteShareGroupStateResponse.PartitionResult] = array(
            "PartitionResult", "0+"
        )

    results: list[DeleteStateResult] = array("DeleteStateResult", "0+")
