"""Gauges of single partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge

if TYPE_CHECKING:
    from kafkapy.replication.partition import Partition


def _gauge(name: str, text: str) -> Gauge:
    return Gauge(f"kafka.cluster:type=Partition,name={name}", text, labels=("topic", "partition"))


UNDER_REPLICATED = _gauge("UnderReplicated", "1 when the leader's ISR lacks a replica.")
IN_SYNC_REPLICAS_COUNT = _gauge("InSyncReplicasCount", "Size of the leader's ISR.")
UNDER_MIN_ISR = _gauge("UnderMinIsr", "1 when the ISR is smaller than min.insync.replicas.")
AT_MIN_ISR = _gauge("AtMinIsr", "1 when the ISR is just min.insync.replicas.")
REPLICAS_COUNT = _gauge("ReplicasCount", "Replicas assigned, as the leader knows.")
LAST_STABLE_OFFSET_LAG = _gauge(
    "LastStableOffsetLag", "Records between the last stable offset and the high watermark."
)


class PartitionMetrics:
    """Registers a partition's gauges and takes them away again.

    Ports: kafka.cluster.Partition (its metrics)
    """

    def __init__(self, partition: Partition, metrics: MetricsRegistry) -> None:
        self._metrics = metrics
        self._labels = {
            "topic": partition.topic_partition.topic,
            "partition": partition.topic_partition.partition,
        }

        def last_stable_offset_lag() -> int:
            log = partition.log
            return log.high_watermark - log.last_stable_offset if log is not None else 0

        functions = {
            UNDER_REPLICATED: lambda: int(partition.is_under_replicated),
            IN_SYNC_REPLICAS_COUNT: lambda: (
                len(partition.in_sync_replica_ids) if partition.is_leader else 0
            ),
            UNDER_MIN_ISR: lambda: int(partition.is_under_min_isr),
            AT_MIN_ISR: lambda: int(partition.is_at_min_isr),
            REPLICAS_COUNT: lambda: (
                len(partition.assignment.replicas) if partition.is_leader else 0
            ),
            LAST_STABLE_OFFSET_LAG: last_stable_offset_lag,
        }
        self._specs = tuple(functions)
        for spec, function in functions.items():
            metrics.gauge(spec, function, **self._labels)

    def remove(self) -> None:
        for spec in self._specs:
            self._metrics.remove(spec, **self._labels)
