"""ReadShareGroupStateSummary: read the start offsets of share partitions."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, int64, string, uuid


class ReadShareGroupStateSummaryRequest(
    Message, api_key=ApiKeys.READ_SHARE_GROUP_STATE_SUMMARY, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData"""

    class PartitionData(Struct):
        partition: int = int32("0+")
        leader_epoch: int = int32("0+")

    class ReadStateSummaryData(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[ReadShareGroupStateSummaryRequest.PartitionData] = array(
            "PartitionData", "0+"
        )

    group_id: str = string("0+")
    topics: list[ReadStateSummaryData] = array("ReadStateSummaryData", "0+")


class ReadShareGroupStateSummaryResponse(
    Message, api_key=ApiKeys.READ_SHARE_GROUP_STATE_SUMMARY, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ReadShareGroupStateSummaryResponseData"""

    class PartitionResult(Struct):
        partition: int = int32("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+", default=None)
        state_epoch: int = int32("0+")
        start_offset: int = int64("0+")

    class ReadStateSummaryResult(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[ReadShareGroupStateSummaryResponse.PartitionResult] = array(
            "PartitionResult", "0+"
        )

    results: list[ReadStateSummaryResult] = array("ReadStateSummaryResult", "0+")
