"""A produce that waits until its records are committed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kafkapy.common.errors import Errors
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Meter
from kafkapy.common.types import TopicPartition
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.replication.hosted_partitions import HostedPartitions
from kafkapy.replication.partition_response import PartitionResponse

logger = logging.getLogger(__name__)

PRODUCE_EXPIRES = Meter(
    "kafka.server:type=DelayedProduceMetrics,name=ExpiresPerSec",
    "Partitions whose produce with acks=all timed out.",
    labels=("topic", "partition"),
)

ProduceCallback = Callable[[dict[TopicPartition, PartitionResponse]], None]


class ProducePartitionStatus:
    """One partition of a produce: the offset that must be committed and the answer so far.

    Ports: kafka.server.ProducePartitionStatus
    """

    __slots__ = ("acks_pending", "required_offset", "response")

    def __init__(self, required_offset: int, response: PartitionResponse) -> None:
        self.required_offset = required_offset
        self.response = response
        self.acks_pending = False


class DelayedProduce(DelayedOperation):
    """Done when every partition it wrote to is settled, each by one of three cases:

    A. this broker no longer hosts the partition, or its log directory is offline;
    B. this broker no longer leads it;
    C. the high watermark has passed the records (C.1), with an error if the ISR is then smaller
       than min.insync.replicas (C.2).

    Ports: kafka.server.DelayedProduce
    """

    def __init__(
        self,
        delay_ms: int,
        statuses: dict[TopicPartition, ProducePartitionStatus],
        *,
        partitions: HostedPartitions,
        metrics: MetricsRegistry,
        response_callback: ProduceCallback,
    ) -> None:
        super().__init__(delay_ms)
        self._statuses = statuses
        self._partitions = partitions
        self._metrics = metrics
        self._response_callback = response_callback
        for status in statuses.values():
            if status.response.error is Errors.NONE:
                # What is answered unless the records are committed in time.
                status.acks_pending = True
                status.response.error = Errors.REQUEST_TIMED_OUT

    def try_complete(self) -> bool:
        pending = False
        for topic_partition, status in self._statuses.items():
            if not status.acks_pending:
                continue
            partition = self._partitions.get_or_error(topic_partition)
            if isinstance(partition, Errors):
                has_enough, error = False, partition
            else:
                has_enough, error = partition.check_enough_replicas_reach_offset(
                    status.required_offset
                )
            if has_enough or error is not Errors.NONE:
                status.acks_pending = False
                status.response.error = error
            else:
                pending = True
        return not pending and self.force_complete()

    def on_expiration(self) -> None:
        for topic_partition, status in self._statuses.items():
            if status.acks_pending:
                logger.debug("Produce to %s timed out", topic_partition)
                self._metrics.meter(PRODUCE_EXPIRES).mark()
                self._metrics.meter(
                    PRODUCE_EXPIRES,
                    topic=topic_partition.topic,
                    partition=topic_partition.partition,
                ).mark()

    def on_complete(self) -> None:
        self._response_callback({tp: status.response for tp, status in self._statuses.items()})
