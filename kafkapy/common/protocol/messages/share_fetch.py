"""ShareFetch: read records as a member of a share group."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.codec import RecordsData
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)


class ShareFetchRequest(Message, api_key=ApiKeys.SHARE_FETCH, versions="0", flexible="0+"):
    """Ports: org.apache.kafka.common.message.ShareFetchRequestData"""

    class AcknowledgementBatch(Struct):
        first_offset: int = int64("0+")
        last_offset: int = int64("0+")
        acknowledge_types: list[int] = array(int8, "0+")

    class FetchPartition(Struct):
        partition_index: int = int32("0+")
        partition_max_bytes: int = int32("0+")
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = array(
            "AcknowledgementBatch", "0+"
        )

    class FetchTopic(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[ShareFetchRequest.FetchPartition] = array("FetchPartition", "0+")

    class ForgottenTopic(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[int] = array(int32, "0+")

    group_id: str | None = string("0+", nullable="0+", default=None)
    member_id: str | None = string("0+", nullable="0+")
    share_session_epoch: int = int32("0+")
    max_wait_ms: int = int32("0+")
    min_bytes: int = int32("0+")
    max_bytes: int = int32("0+", default=0x7FFFFFFF)
    topics: list[FetchTopic] = array("FetchTopic", "0+")
    forgotten_topics_data: list[ForgottenTopic] = array("ForgottenTopic", "0+")


class ShareFetchResponse(Message, api_key=ApiKeys.SHARE_FETCH, versions="0", flexible="0+"):
    """Ports: org.apache.kafka.common.message.ShareFetchResponseData"""

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+")

    class AcquiredRecords(Struct):
        first_offset: int = int64("0+")
        last_offset: int = int64("0+")
        delivery_count: int = int16("0+")

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+", default=None)
        acknowledge_error_code: int = int16("0+")
        acknowledge_error_message: str | None = string("0+", nullable="0+", default=None)
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = struct("LeaderIdAndEpoch", "0+")
        records: RecordsData | None = records("0+", nullable="0+")
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = array("AcquiredRecords", "0+")

    class ShareFetchableTopicResponse(Struct):
        topic_id: UUID = uuid("0+")
        partitions: list[ShareFetchResponse.PartitionData] = array("PartitionData", "0+")

    class NodeEndpoint(Struct):
        node_id: int = int32("0+")
        host: str = string("0+")
        port: int = int32("0+")
        rack: str | None = string("0+", nullable="0+", default=None)

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    responses: list[ShareFetchableTopicResponse] = array("ShareFetchableTopicResponse", "0+")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", "0+")
