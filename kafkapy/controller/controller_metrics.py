"""What a controller shows of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge, Histogram, HistogramInstrument, Meter
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.controller.controller_state import ControllerState
from kafkapy.controller.replica_state import ReplicaState


def _gauge(name: str, help: str) -> Gauge:
    return Gauge(f"kafka.controller:type=KafkaController,name={name}", help)


ACTIVE_CONTROLLER_COUNT = _gauge("ActiveControllerCount", "1 on the controller, 0 elsewhere.")
OFFLINE_PARTITIONS_COUNT = _gauge("OfflinePartitionsCount", "Partitions without a leader.")
PREFERRED_REPLICA_IMBALANCE_COUNT = _gauge(
    "PreferredReplicaImbalanceCount", "Partitions led by another than their first replica."
)
CONTROLLER_STATE = _gauge("ControllerState", "What the controller is doing, 0 when idle.")
GLOBAL_TOPIC_COUNT = _gauge("GlobalTopicCount", "Topics in the cluster.")
GLOBAL_PARTITION_COUNT = _gauge("GlobalPartitionCount", "Partitions in the cluster.")
TOPICS_TO_DELETE_COUNT = _gauge("TopicsToDeleteCount", "Topics waiting to be deleted.")
REPLICAS_TO_DELETE_COUNT = _gauge("ReplicasToDeleteCount", "Replicas waiting to be deleted.")
INELIGIBLE_TOPICS_TO_DELETE_COUNT = _gauge(
    "TopicsIneligibleToDeleteCount", "Topics whose deletion is halted."
)
INELIGIBLE_REPLICAS_TO_DELETE_COUNT = _gauge(
    "ReplicasIneligibleToDeleteCount", "Replicas whose deletion is halted."
)
ACTIVE_BROKER_COUNT = _gauge("ActiveBrokerCount", "Registered brokers.")
FENCED_BROKER_COUNT = _gauge("FencedBrokerCount", "Always 0: brokers are not fenced here.")

UNCLEAN_LEADER_ELECTIONS = Meter(
    "kafka.controller:type=ControllerStats,name=UncleanLeaderElectionsPerSec",
    "Elections of a leader that was not in sync.",
)


def _timer(name: str, help: str) -> Histogram:
    return Histogram(f"kafka.controller:type=ControllerStats,name={name}RateAndTimeMs", help)


# Kafka's dashboards know some of these under names older than the states.
EVENT_TIMES = {
    ControllerState.CONTROLLER_CHANGE: _timer("ControllerChange", "Controller elections."),
    ControllerState.BROKER_CHANGE: _timer("LeaderElection", "Changes of the set of brokers."),
    ControllerState.TOPIC_CHANGE: _timer("TopicChange", "New topics and partitions."),
    ControllerState.TOPIC_DELETION: _timer("TopicDeletion", "Deletions of topics."),
    ControllerState.ALTER_PARTITION_REASSIGNMENT: _timer(
        "PartitionReassignment", "Steps of reassignments."
    ),
    ControllerState.AUTO_LEADER_BALANCE: _timer(
        "AutoLeaderBalance", "Checks whether leadership is out of balance."
    ),
    ControllerState.MANUAL_LEADER_BALANCE: _timer(
        "ManualLeaderBalance", "Leader elections that were asked for."
    ),
    ControllerState.CONTROLLED_SHUTDOWN: _timer("ControlledShutdown", "Controlled shutdowns."),
    ControllerState.ISR_CHANGE: _timer("IsrChange", "Changes of in-sync replicas."),
    ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED: _timer(
        "LeaderAndIsrResponseReceived", "Answers to LeaderAndIsr requests."
    ),
    ControllerState.LOG_DIR_CHANGE: _timer("LogDirChange", "Failures of log directories."),
    ControllerState.UNCLEAN_LEADER_ELECTION_ENABLE: _timer(
        "UncleanLeaderElectionEnable", "Elections after unclean ones were allowed."
    ),
    ControllerState.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE: _timer(
        "TopicUncleanLeaderElectionEnable", "The same for one topic."
    ),
    ControllerState.LIST_PARTITION_REASSIGNMENT: _timer(
        "ListPartitionReassignment", "Questions for reassignments."
    ),
}


@dataclass(frozen=True, slots=True)
class _Counts:
    offline_partitions: int = 0
    preferred_replica_imbalance: int = 0
    topics: int = 0
    partitions: int = 0
    topics_to_delete: int = 0
    replicas_to_delete: int = 0
    ineligible_topics_to_delete: int = 0
    ineligible_replicas_to_delete: int = 0
    active_brokers: int = 0


class ControllerMetrics:
    """Gauges over counts that the event thread takes after each event. Thread-safe to read.

    Ports: kafka.controller.ControllerStats
    """

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._metrics = metrics  # constant after construction
        self._counts = _Counts()  # replaced as a whole by the event thread
        self.unclean_leader_elections = metrics.meter(UNCLEAN_LEADER_ELECTIONS)
        self.event_times: dict[ControllerState, HistogramInstrument] = {
            state: metrics.histogram(spec) for state, spec in EVENT_TIMES.items()
        }

    def register(
        self, *, is_active: Callable[[], bool], state: Callable[[], ControllerState]
    ) -> None:
        gauge = self._metrics.gauge
        gauge(ACTIVE_CONTROLLER_COUNT, lambda: int(is_active()))
        gauge(CONTROLLER_STATE, lambda: int(state()))
        gauge(OFFLINE_PARTITIONS_COUNT, lambda: self._counts.offline_partitions)
        gauge(PREFERRED_REPLICA_IMBALANCE_COUNT, lambda: self._counts.preferred_replica_imbalance)
        gauge(GLOBAL_TOPIC_COUNT, lambda: self._counts.topics)
        gauge(GLOBAL_PARTITION_COUNT, lambda: self._counts.partitions)
        gauge(TOPICS_TO_DELETE_COUNT, lambda: self._counts.topics_to_delete)
        gauge(REPLICAS_TO_DELETE_COUNT, lambda: self._counts.replicas_to_delete)
        gauge(INELIGIBLE_TOPICS_TO_DELETE_COUNT, lambda: self._counts.ineligible_topics_to_delete)
        gauge(
            INELIGIBLE_REPLICAS_TO_DELETE_COUNT,
            lambda: self._counts.ineligible_replicas_to_delete,
        )
        gauge(ACTIVE_BROKER_COUNT, lambda: self._counts.active_brokers)
        gauge(FENCED_BROKER_COUNT, lambda: 0)

    def update(self, context: ControllerContext, *, is_active: bool) -> None:
        """Only the controller knows the cluster; everybody else shows zeros."""
        if not is_active:
            self._counts = _Counts()
            return
        to_delete = context.topics_to_be_deleted
        self._counts = _Counts(
            offline_partitions=context.offline_partition_count,
            preferred_replica_imbalance=context.preferred_replica_imbalance_count,
            topics=len(context.all_topics),
            partitions=context.partition_count,
            topics_to_delete=len(to_delete),
            replicas_to_delete=sum(len(context.replicas_for_topic(topic)) for topic in to_delete),
            ineligible_topics_to_delete=len(context.topics_ineligible_for_deletion),
            ineligible_replicas_to_delete=sum(
                len(context.replicas_in_state(topic, ReplicaState.DELETION_INELIGIBLE))
                for topic in to_delete
            ),
            active_brokers=len(context.live_or_shutting_down_broker_ids),
        )
