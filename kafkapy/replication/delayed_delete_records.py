"""A DeleteRecords that waits until every replica has deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.common.errors import Errors, NotLeaderOrFollowerError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Meter
from kafkapy.common.types import TopicPartition
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.replication.hosted_partitions import HostedPartitions

DELETE_RECORDS_EXPIRES = Meter(
    "kafka.server:type=DelayedDeleteRecordsMetrics,name=ExpiresPerSec",
    "Partitions whose DeleteRecords timed out.",
)

INVALID_LOW_WATERMARK = -1


@dataclass(slots=True)
class DeleteRecordsPartitionResult:
    """The answer for one partition, mutable while the request waits."""

    error: Errors
    low_watermark: int = INVALID_LOW_WATERMARK


DeleteRecordsCallback = Callable[[dict[TopicPartition, DeleteRecordsPartitionResult]], None]


class DeleteRecordsPartitionStatus:
    """One partition of a DeleteRecords: the low watermark that must be reached.

    Ports: kafka.server.DeleteRecordsPartitionStatus
    """

    __slots__ = ("acks_pending", "required_offset", "result")

    def __init__(self, required_offset: int, result: DeleteRecordsPartitionResult) -> None:
        self.required_offset = required_offset
        self.result = result
        self.acks_pending = False


class DelayedDeleteRecords(DelayedOperation):
    """Done when, in every partition, the low watermark has reached the offset, or this broker
    does not lead or host it any more.

    Ports: kafka.server.DelayedDeleteRecords
    """

    def __init__(
        self,
        delay_ms: int,
        statuses: dict[TopicPartition, DeleteRecordsPartitionStatus],
        *,
        partitions: HostedPartitions,
        metrics: MetricsRegistry,
        response_callback: DeleteRecordsCallback,
    ) -> None:
        super().__init__(delay_ms)
        self._statuses = statuses
        self._partitions = partitions
        self._metrics = metrics
        self._response_callback = response_callback
        for status in statuses.values():
            if status.result.error is Errors.NONE:
                status.acks_pending = True
                status.result.error = Errors.REQUEST_TIMED_OUT

    def try_complete(self) -> bool:
        pending = False
        for topic_partition, status in self._statuses.items():
            if not status.acks_pending:
                continue
            result = self._check(topic_partition, status.required_offset)
            if result is None:
                pending = True
            else:
                status.acks_pending = False
                status.result.error = result.error
                status.result.low_watermark = result.low_watermark
        return not pending and self.force_complete()

    def _check(
        self, topic_partition: TopicPartition, required_offset: int
    ) -> DeleteRecordsPartitionResult | None:
        """None while the low watermark is below the offset."""
        partition = self._partitions.get(topic_partition)
        if partition is None:
            offline = self._partitions.is_offline(topic_partition)
            return DeleteRecordsPartitionResult(
                Errors.KAFKA_STORAGE_ERROR if offline else Errors.UNKNOWN_TOPIC_OR_PARTITION
            )
        try:
            low_watermark = partition.low_watermark_if_leader
        except NotLeaderOrFollowerError:
            return DeleteRecordsPartitionResult(Errors.NOT_LEADER_OR_FOLLOWER)
        if low_watermark < required_offset:
            return None
        return DeleteRecordsPartitionResult(Errors.NONE, low_watermark)

    def on_expiration(self) -> None:
        pending = sum(status.acks_pending for status in self._statuses.values())
        self._metrics.meter(DELETE_RECORDS_EXPIRES).mark(pending)

    def on_complete(self) -> None:
        self._response_callback({tp: status.result for tp, status in self._statuses.items()})
