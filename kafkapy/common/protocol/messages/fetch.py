"""Fetch: read record batches from partitions, for consumers and followers alike."""

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


class FetchRequest(
    Message, api_key=ApiKeys.FETCH, versions="0-17", flexible="12+", deprecated="0-3"
):
    """Ports: org.apache.kafka.common.message.FetchRequestData"""

    class ReplicaState(Struct):
        replica_id: int = int32("15+", default=-1)
        replica_epoch: int = int64("15+", default=-1)

    class FetchPartition(Struct):
        partition: int = int32("0+")
        current_leader_epoch: int = int32("9+", default=-1, ignorable=True)
        fetch_offset: int = int64("0+")
        last_fetched_epoch: int = int32("12+", default=-1)
        log_start_offset: int = int64("5+", default=-1, ignorable=True)
        partition_max_bytes: int = int32("0+")
        replica_directory_id: UUID = uuid("17+", tag=0, ignorable=True)

    class FetchTopic(Struct):
        topic: str = string("0-12", ignorable=True)
        topic_id: UUID = uuid("13+", ignorable=True)
        partitions: list[FetchRequest.FetchPartition] = array("FetchPartition", "0+")

    class ForgottenTopic(Struct):
        topic: str = string("7-12", ignorable=True)
        topic_id: UUID = uuid("13+", ignorable=True)
        partitions: list[int] = array(int32, "7+")

    cluster_id: str | None = string("12+", nullable="12+", default=None, tag=0, ignorable=True)
    replica_id: int = int32("0-14", default=-1)
    replica_state: ReplicaState = struct("ReplicaState", "15+", tag=1)
    max_wait_ms: int = int32("0+")
    min_bytes: int = int32("0+")
    max_bytes: int = int32("3+", default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = int8("4+", ignorable=True)
    session_id: int = int32("7+", ignorable=True)
    session_epoch: int = int32("7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = array("FetchTopic", "0+")
    forgotten_topics_data: list[ForgottenTopic] = array("ForgottenTopic", "7+")
    rack_id: str = string("11+", ignorable=True)


class FetchResponse(Message, api_key=ApiKeys.FETCH, versions="0-17", flexible="12+"):
    """Ports: org.apache.kafka.common.message.FetchResponseData"""

    class EpochEndOffset(Struct):
        epoch: int = int32("12+", default=-1)
        end_offset: int = int64("12+", default=-1)

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32("12+", default=-1)
        leader_epoch: int = int32("12+", default=-1)

    class SnapshotId(Struct):
        end_offset: int = int64("0+", default=-1)
        epoch: int = int32("0+", default=-1)

    class AbortedTransaction(Struct):
        producer_id: int = int64("4+")
        first_offset: int = int64("4+")

    class PartitionData(Struct):
        partition_index: int = int32("0+")
        error_code: int = int16("0+")
        high_watermark: int = int64("0+")
        last_stable_offset: int = int64("4+", default=-1, ignorable=True)
        log_start_offset: int = int64("5+", default=-1, ignorable=True)
        diverging_epoch: FetchResponse.EpochEndOffset = struct("EpochEndOffset", "12+", tag=0)
        current_leader: FetchResponse.LeaderIdAndEpoch = struct("LeaderIdAndEpoch", "12+", tag=1)
        snapshot_id: FetchResponse.SnapshotId = struct("SnapshotId", "12+", tag=2)
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = array(
            "AbortedTransaction", "4+", nullable="4+", ignorable=True
        )
        preferred_read_replica: int = int32("11+", default=-1)
        records: RecordsData | None = records("0+", nullable="0+")

    class FetchableTopicResponse(Struct):
        topic: str = string("0-12", ignorable=True)
        topic_id: UUID = uuid("13+", ignorable=True)
        partitions: list[FetchResponse.PartitionData] = array("PartitionData", "0+")

    class NodeEndpoint(Struct):
        node_id: int = int32("16+")
        host: str = string("16+")
        port: int = int32("16+")
        rack: str | None = string("16+", nullable="16+", default=None)

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("7+", ignorable=True)
    session_id: int = int32("7+")
    responses: list[FetchableTopicResponse] = array("FetchableTopicResponse", "0+")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", "16+", tag=0)
