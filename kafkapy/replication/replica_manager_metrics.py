"""Gauges of all the replicas of a broker."""

from __future__ import annotations

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.replication.hosted_partitions import HostedPartitions


def _gauge(name: str, text: str) -> Gauge:
    return Gauge(f"kafka.server:type=ReplicaManager,name={name}", text)


LEADER_COUNT = _gauge("LeaderCount", "Partitions led by this broker.")
PARTITION_COUNT = _gauge("PartitionCount", "Partitions with a replica on this broker.")
OFFLINE_REPLICA_COUNT = _gauge("OfflineReplicaCount", "Replicas in offline log directories.")
UNDER_REPLICATED_PARTITIONS = _gauge(
    "UnderReplicatedPartitions", "Partitions led here whose ISR lacks a replica."
)
UNDER_MIN_ISR_PARTITION_COUNT = _gauge(
    "UnderMinIsrPartitionCount", "Partitions led here with an ISR below min.insync.replicas."
)
AT_MIN_ISR_PARTITION_COUNT = _gauge(
    "AtMinIsrPartitionCount", "Partitions led here with an ISR of just min.insync.replicas."
)
REASSIGNING_PARTITIONS = _gauge(
    "ReassigningPartitions", "Partitions led here that are being reassigned."
)


class ReplicaManagerMetrics:
    """Registers the gauges and takes them away again.

    Ports: kafka.server.ReplicaManager (its metrics)
    """

    def __init__(self, partitions: HostedPartitions, metrics: MetricsRegistry) -> None:
        self._metrics = metrics
        functions = {
            LEADER_COUNT: lambda: len(partitions.leaders()),
            PARTITION_COUNT: lambda: partitions.count,
            OFFLINE_REPLICA_COUNT: lambda: partitions.offline_count,
            UNDER_REPLICATED_PARTITIONS: lambda: sum(
                partition.is_under_replicated for partition in partitions.online()
            ),
            UNDER_MIN_ISR_PARTITION_COUNT: lambda: sum(
                partition.is_under_min_isr for partition in partitions.online()
            ),
            AT_MIN_ISR_PARTITION_COUNT: lambda: sum(
                partition.is_at_min_isr for partition in partitions.online()
            ),
            REASSIGNING_PARTITIONS: lambda: sum(
                partition.is_reassigning for partition in partitions.online()
            ),
        }
        self._specs = tuple(functions)
        for spec, function in functions.items():
            metrics.gauge(spec, function)

    def remove(self) -> None:
        for spec in self._specs:
            self._metrics.remove(spec)
