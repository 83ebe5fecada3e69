"""DeleteRecords: move the start of partitions forward."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, int64, string


class DeleteRecordsRequest(Message, api_key=ApiKeys.DELETE_RECORDS, versions="0-2", flexible="2+"):
    """Ports: org.apache.kafka.common.message.DeleteRecordsRequestData"""

    class DeleteRecordsPartition(Struct):
        partition_index: int = int32("0+")
        offset: int = int64("0+")

    class DeleteRecordsTopic(Struct):
        name: str = string("0+")
        partitions: list[DeleteRecordsRequest.DeleteRecordsPartition] = array(
            "DeleteRecordsPartition", "0+"
        )

    topics: list[DeleteRecordsTopic] = array("DeleteRecordsTopic", "0+")
    timeout_ms: int = int32("0+")


class DeleteRecordsResponse(Message, api_key=ApiKeys.DELETE_RECORDS, versions="0-2", flexible="2+"):
    """Ports: org.apache.kafka.common.message.DeleteRecordsResponseData"""

    class DeleteRecordsPartitionResult(Struct):
        partition_index: int = int32("0+")
        low_watermark: int = int64("0+")
        error_code: int = int16("0+")

    class DeleteRecordsTopicResult(Struct):
        name: str = string("0+")
        partitions: list[DeleteRecordsResponse.DeleteRecordsPartitionResult] = array(
            "DeleteRecordsPartitionResult", "0+"
        )

    throttle_time_ms: int = int32("0+")
    topics: list[DeleteRecordsTopicResult] = array("DeleteRecordsTopicResult", "0+")
