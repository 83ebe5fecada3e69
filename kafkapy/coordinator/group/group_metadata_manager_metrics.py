"""What the group coordinator measures."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge, Histogram, Meter
from kafkapy.coordinator.group.group_metadata import GroupMetadata
from kafkapy.coordinator.group.group_state import GroupState


def _gauge(name: str, text: str) -> Gauge:
    return Gauge(f"kafka.coordinator.group:type=GroupMetadataManager,name={name}", text)


NUM_OFFSETS = _gauge("NumOffsets", "Committed offsets in memory.")
NUM_GROUPS = _gauge("NumGroups", "Groups in memory.")
NUM_GROUPS_PREPARING_REBALANCE = _gauge(
    "NumGroupsPreparingRebalance", "Groups that wait for their members to join."
)
NUM_GROUPS_COMPLETING_REBALANCE = _gauge(
    "NumGroupsCompletingRebalance", "Groups that wait for their leader's assignment."
)
NUM_GROUPS_STABLE = _gauge("NumGroupsStable", "Groups whose members have their assignments.")
NUM_GROUPS_DEAD = _gauge("NumGroupsDead", "Groups that are being removed.")
NUM_GROUPS_EMPTY = _gauge("NumGroupsEmpty", "Groups without members.")
OFFSET_COMMITS = Meter(
    "kafka.server:type=group-coordinator-metrics,name=offset-commit-count", "Offsets committed."
)
OFFSET_EXPIRATIONS = Meter(
    "kafka.server:type=group-coordinator-metrics,name=offset-expiration-count", "Offsets expired."
)
OFFSET_DELETIONS = Meter(
    "kafka.server:type=group-coordinator-metrics,name=offset-deletion-count",
    "Offsets deleted on request.",
)
COMPLETED_REBALANCES = Meter(
    "kafka.server:type=group-coordinator-metrics,name=group-completed-rebalance-count",
    "Rebalances that ended with an assignment.",
)
PARTITION_LOAD_TIME = Histogram(
    "kafka.server:type=group-coordinator-metrics,name=partition-load-time",
    "Milliseconds from an election to a loaded partition.",
)

_STATES = {
    NUM_GROUPS_PREPARING_REBALANCE: GroupState.PREPARING_REBALANCE,
    NUM_GROUPS_COMPLETING_REBALANCE: GroupState.COMPLETING_REBALANCE,
    NUM_GROUPS_STABLE: GroupState.STABLE,
    NUM_GROUPS_DEAD: GroupState.DEAD,
    NUM_GROUPS_EMPTY: GroupState.EMPTY,
}


class GroupMetadataManagerMetrics:
    """Registers the metrics and takes the gauges away again. Thread-safe.

    Ports: kafka.coordinator.group.GroupMetadataManager (its metrics)
    """

    def __init__(self, metrics: MetricsRegistry, groups: Callable[[], list[GroupMetadata]]) -> None:
        self._metrics = metrics
        self.offset_commits = metrics.meter(OFFSET_COMMITS)
        self.offset_expirations = metrics.meter(OFFSET_EXPIRATIONS)
        self.offset_deletions = metrics.meter(OFFSET_DELETIONS)
        self.completed_rebalances = metrics.meter(COMPLETED_REBALANCES)
        self.partition_load_time = metrics.histogram(PARTITION_LOAD_TIME)
        metrics.gauge(NUM_OFFSETS, lambda: sum(len(group.offsets) for group in groups()))
        metrics.gauge(NUM_GROUPS, lambda: len(groups()))
        for spec, state in _STATES.items():
            metrics.gauge(spec, _counter(groups, state))

    def remove(self) -> None:
        for spec in (NUM_OFFSETS, NUM_GROUPS, *_STATES):
            self._metrics.remove(spec)


def _counter(groups: Callable[[], list[GroupMetadata]], state: GroupState) -> Callable[[], float]:
    return lambda: sum(group.state is state for group in groups())
