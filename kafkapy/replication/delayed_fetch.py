"""A fetch that waits until there is enough to return."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kafkapy.common.errors import (
    FencedLeaderEpochError,
    KafkaStorageError,
    NotLeaderOrFollowerError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Meter
from kafkapy.common.types import TopicIdPartition
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.replication.fetch_partition_result import FetchPartitionResult
from kafkapy.replication.hosted_partitions import HostedPartitions
from kafkapy.replication.partition import UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET, Partition
from kafkapy.storage.fetch_params import FetchParams, FetchPartitionData
from kafkapy.storage.log_offset_metadata import UNKNOWN_OFFSET_METADATA, LogOffsetMetadata

logger = logging.getLogger(__name__)

FETCH_EXPIRES = Meter(
    "kafka.server:type=DelayedFetchMetrics,name=ExpiresPerSec",
    "Fetches answered because their time was up.",
    labels=("fetcherType",),
)

FetchInfos = Sequence[tuple[TopicIdPartition, FetchPartitionData]]
FetchResults = list[tuple[TopicIdPartition, FetchPartitionResult]]
FetchCallback = Callable[[FetchResults], None]


class FetchPartitionStatus(NamedTuple):
    """Where on disk the fetch of one partition starts.

    Ports: kafka.server.FetchPartitionStatus
    """

    start_offset_metadata: LogOffsetMetadata
    topic_id_partition: TopicIdPartition
    data: FetchPartitionData


class DelayedFetch(DelayedOperation):
    """Done as soon as one of these holds:

    A. this broker no longer leads a partition it should read as leader;
    B. this broker is no longer a replica of a partition;
    C. this broker does not know of a partition;
    D. a partition's log directory is offline;
    E. the leader epoch the fetch was made under is fenced;
    F. the fetch offset is beyond the end (truncated) or not on the segment that the end is on;
    G. the bytes available in all partitions together reach the fetch's minimum;
    H. the fetcher's log is found to diverge from the leader's.

    Ports: kafka.server.DelayedFetch
    """

    def __init__(
        self,
        params: FetchParams,
        statuses: list[FetchPartitionStatus],
        *,
        partitions: HostedPartitions,
        read: Callable[[FetchParams, FetchInfos], FetchResults],
        metrics: MetricsRegistry,
        response_callback: FetchCallback,
    ) -> None:
        super().__init__(params.max_wait_ms)
        self._params = params
        self._statuses = statuses
        self._partitions = partitions
        self._read = read
        self._metrics = metrics
        self._response_callback = response_callback

    def try_complete(self) -> bool:
        accumulated_bytes = 0
        for start, topic_id_partition, data in self._statuses:
            if start == UNKNOWN_OFFSET_METADATA:
                continue
            try:
                partition = self._partitions.get_or_raise(topic_id_partition.topic_partition)
                available_bytes = self._available_bytes(partition, start, data)
                if available_bytes is None or (
                    data.last_fetched_epoch is not None
                    and self._is_diverging(partition, data, data.last_fetched_epoch)
                ):
                    return self.force_complete()
            except (
                NotLeaderOrFollowerError,
                UnknownTopicOrPartitionError,
                KafkaStorageError,
                FencedLeaderEpochError,
                UnknownLeaderEpochError,
            ) as error:
                logger.debug("Fetch of %s need not wait: %s", topic_id_partition, error)
                return self.force_complete()
            accumulated_bytes += available_bytes
        return accumulated_bytes >= self._params.min_bytes and self.force_complete()

    def _available_bytes(
        self, partition: Partition, start: LogOffsetMetadata, data: FetchPartitionData
    ) -> int | None:
        """Bytes between the fetch offset and the end; None in case F."""
        end = partition.fetch_end_offset(
            self._params.isolation,
            current_leader_epoch=data.current_leader_epoch,
            fetch_only_from_leader=self._params.fetch_only_leader,
        )
        # Equal offsets may be on different segments when one has just been rolled: that is no F.
        if start.message_offset == end.message_offset:
            return 0
        if start.message_offset > end.message_offset or start.on_older_segment(end):
            return None
        if start.on_same_segment(end):
            return min(end.position_diff(start), data.max_bytes)
        return 0

    @staticmethod
    def _is_diverging(partition: Partition, data: FetchPartitionData, fetch_epoch: int) -> bool:
        end = partition.last_offset_for_leader_epoch(
            fetch_epoch,
            current_leader_epoch=data.current_leader_epoch,
            fetch_only_from_leader=False,
        )
        return (
            end.end_offset == UNDEFINED_EPOCH_OFFSET
            or end.leader_epoch == UNDEFINED_EPOCH
            or end.leader_epoch < fetch_epoch
            or end.end_offset < data.fetch_offset
        )

    def on_expiration(self) -> None:
        fetcher_type = "follower" if self._params.is_from_follower else "consumer"
        self._metrics.meter(FETCH_EXPIRES, fetcherType=fetcher_type).mark()

    def on_complete(self) -> None:
        """Answer with whatever there is now, in every partition."""
        self._response_callback(
            self._read(
                self._params,
                [(status.topic_id_partition, status.data) for status in self._statuses],
            )
        )
