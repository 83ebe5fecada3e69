"""FetchSnapshot: read a part of a KRaft snapshot."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.codec import RecordsData
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uint16,
    uuid,
)


class FetchSnapshotRequest(Message, api_key=ApiKeys.FETCH_SNAPSHOT, versions="0-1", flexible="0+"):
    """Ports: org.apache.kafka.common.message.FetchSnapshotRequestData"""

    class SnapshotId(Struct):
        end_offset: int = int64("0+")
        epoch: int = int32("0+")

    class PartitionSnapshot(Struct):
        partition: int = int32("0+")
        current_leader_epoch: int = int32("0+")
        snapshot_id: FetchSnapshotRequest.SnapshotId = struct("SnapshotId", "0+")
        position: int = int64("0+")
        replica_directory_id: UUID = uuid("1+", tag=0, ignorable=True)

    class TopicSnapshot(Struct):
        name: str = string("0+")
        partitions: list[FetchSnapshotRequest.PartitionSnapshot] = array("PartitionSnapshot", "0+")

    cluster_id: str | None = string("0+", nullable="0+", default=None, tag=0)
    replica_id: int = int32("0+", default=-1)
    max_bytes: int = int32("0+", default=0x7FFFFFFF)
    topics: list[TopicSnapshot] = array("TopicSnapshot", "0+")


class FetchSnapshotResponse(Message, api_key=ApiKeys.FETCH_SNAPSHOT, versions="0-1", flexible="0+"):
    """Ports: org.apache.kafka.common.message.FetchSnapshotResponseData"""

    class SnapshotId(Struct):
        end_offset: int = int64("0+")
        epoch: int = int32("0+")

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32("0+")
        leader_epoch: int = int32("0+")

    class PartitionSnapshot(Struct):
        index: int = int32("0+")
        error_code: int = int16("0+")
        snapshot_id: FetchSnapshotResponse.SnapshotId = struct("SnapshotId", "0+")
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = struct(
            "LeaderIdAndEpoch", "0+", tag=0
        )
        size: int = int64("0+")
        position: int = int64("0+")
        unaligned_records: RecordsData | None = records("0+")

    class TopicSnapshot(Struct):
        name: str = string("0+")
        partitions: list[FetchSnapshotResponse.PartitionSnapshot] = array("PartitionSnapshot", "0+")

    class NodeEndpoint(Struct):
        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    throttle_time_ms: int = int32("0+", ignorable=True)
    error_code: int = int16("0+")
    topics: list[TopicSnapshot] = array("TopicSnapshot", "0+")
    node_endpoints: list[NodeEndpoint] = array("NodeEndpoint", "1+", tag=0)
