"""Everything the controller knows about the cluster, as of the event it is processing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from kafkapy.common.types import TopicPartition
from kafkapy.controller.partition_state import PartitionState
from kafkapy.controller.replica_state import ReplicaState
from kafkapy.metadata.broker import Broker
from kafkapy.metadata.leader_and_isr import LeaderIsrAndControllerEpoch
from kafkapy.metadata.replica_assignment import ReplicaAssignment

INITIAL_CONTROLLER_EPOCH = 0
INITIAL_CONTROLLER_EPOCH_ZK_VERSION = 0

_NO_ASSIGNMENT = ReplicaAssignment(())


class PartitionAndReplica(NamedTuple):
    """One replica of a partition, named by its broker.

    Ports: kafka.controller.PartitionAndReplica
    """

    topic_partition: TopicPartition
    replica: int

    @property
    def topic(self) -> str:
        return self.topic_partition.topic

    def __str__(self) -> str:
        return f"{self.topic_partition} on broker {self.replica}"


class ControllerContext:
    """The cluster's brokers, topics, assignments, leaders and the states of the two machines.

    Belongs to the event thread; the counts may be read by any thread.

    Ports: kafka.controller.ControllerContext
    """

    def __init__(self) -> None:
        self.epoch = INITIAL_CONTROLLER_EPOCH
        self.epoch_zk_version = INITIAL_CONTROLLER_EPOCH_ZK_VERSION
        self.offline_partition_count = 0
        self.preferred_replica_imbalance_count = 0

        self.shutting_down_broker_ids: set[int] = set()
        self._live_brokers: dict[int, Broker] = {}
        self._live_broker_epochs: dict[int, int] = {}
        # Replicas whose log directory failed, by broker.
        self.replicas_on_offline_dirs: dict[int, frozenset[TopicPartition]] = {}

        self.all_topics: set[str] = set()
        self.topic_ids: dict[str, UUID] = {}
        self.topic_names: dict[UUID, str] = {}
        self._assignments: dict[str, dict[int, ReplicaAssignment]] = {}
        self._leadership: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        self.partitions_being_reassigned: set[TopicPartition] = set()

        self._partition_states: dict[TopicPartition, PartitionState] = {}
        self._replica_states: dict[PartitionAndReplica, ReplicaState] = {}

        self.topics_to_be_deleted: set[str] = set()
        # A topic may be queued for deletion without its deletion having begun: its partitions
        # keep their leaders until then.
        self.topics_with_deletion_started: set[str] = set()
        self.topics_ineligible_for_deletion: set[str] = set()

    def reset(self) -> None:
        """Forget the cluster, as a broker that is not the controller has."""
        ControllerContext.__init__(self)

    # Brokers

    def set_live_brokers(self, broker_and_epochs: Mapping[Broker, int]) -> None:
        self._live_brokers.clear()
        self._live_broker_epochs.clear()
        self.add_live_brokers(broker_and_epochs)

    def add_live_brokers(self, broker_and_epochs: Mapping[Broker, int]) -> None:
        for broker, epoch in broker_and_epochs.items():
            self._live_brokers[broker.id] = broker
            self._live_broker_epochs[broker.id] = epoch

    def remove_live_brokers(self, broker_ids: Iterable[int]) -> None:
        for broker_id in broker_ids:
            self._live_brokers.pop(broker_id, None)
            self._live_broker_epochs.pop(broker_id, None)

    def update_broker_metadata(self, broker: Broker) -> None:
        self._live_brokers[broker.id] = broker

    @property
    def live_broker_ids(self) -> set[int]:
        return self._live_broker_epochs.keys() - self.shutting_down_broker_ids

    @property
    def live_or_shutting_down_broker_ids(self) -> set[int]:
        return set(self._live_broker_epochs)

    @property
    def live_or_shutting_down_brokers(self) -> tuple[Broker, ...]:
        return tuple(self._live_brokers.values())

    @property
    def live_broker_id_and_epochs(self) -> Mapping[int, int]:
        return self._live_broker_epochs

    def live_or_shutting_down_broker(self, broker_id: int) -> Broker | None:
        return self._live_brokers.get(broker_id)

    def is_live_or_shutting_down(self, broker_id: int) -> bool:
        return broker_id in self._live_broker_epochs

    # Topics and assignments

    def set_all_topics(self, topics: Iterable[str]) -> None:
        self.all_topics = set(topics)

    def add_topic_id(self, topic: str, topic_id: UUID) -> None:
        """Raises when the topic has another id or the id another topic."""
        known_id = self.topic_ids.setdefault(topic, topic_id)
        if known_id != topic_id:
            raise ValueError(f"topic {topic} already has the id {known_id}, not {topic_id}")
        known_name = self.topic_names.setdefault(topic_id, topic)
        if known_name != topic:
            raise ValueError(f"the id {topic_id} already belongs to {known_name}, not {topic}")

    def partition_replica_assignment(self, partition: TopicPartition) -> tuple[int, ...]:
        return self.partition_full_replica_assignment(partition).replicas

    def partition_full_replica_assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        return self._assignments.get(partition.topic, {}).get(partition.partition, _NO_ASSIGNMENT)

    def partition_full_replica_assignment_for_topic(
        self, topic: str
    ) -> dict[TopicPartition, ReplicaAssignment]:
        return {
            TopicPartition(topic, partition): assignment
            for partition, assignment in self._assignments.get(topic, {}).items()
        }

    def update_partition_full_replica_assignment(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        was_imbalanced = self._is_imbalanced(partition)
        self._assignments.setdefault(partition.topic, {})[partition.partition] = assignment
        self._count_imbalance(was_imbalanced, self._is_imbalanced(partition))

    def partitions_for_topic(self, topic: str) -> set[TopicPartition]:
        return {TopicPartition(topic, p) for p in self._assignments.get(topic, {})}

    @property
    def all_partitions(self) -> set[TopicPartition]:
        return {
            TopicPartition(topic, partition)
            for topic, partitions in self._assignments.items()
            for partition in partitions
        }

    @property
    def partition_count(self) -> int:
        return sum(map(len, self._assignments.values()))

    def partitions_on_broker(self, broker_id: int) -> set[TopicPartition]:
        return {replica.topic_partition for replica in self.replicas_on_brokers({broker_id})}

    def replicas_on_brokers(self, broker_ids: set[int]) -> set[PartitionAndReplica]:
        return {
            PartitionAndReplica(TopicPartition(topic, partition), replica)
            for topic, partitions in self._assignments.items()
            for partition, assignment in partitions.items()
            for replica in assignment.replicas
            if replica in broker_ids
        }

    def replicas_for_topic(self, topic: str) -> set[PartitionAndReplica]:
        return self.replicas_for_partitions(self.partitions_for_topic(topic))

    def replicas_for_partitions(
        self, partitions: Iterable[TopicPartition]
    ) -> set[PartitionAndReplica]:
        return {
            PartitionAndReplica(partition, replica)
            for partition in partitions
            for replica in self.partition_replica_assignment(partition)
        }

    def is_replica_online(
        self,
        broker_id: int,
        partition: TopicPartition,
        *,
        include_shutting_down_brokers: bool = False,
    ) -> bool:
        """Its broker lives (and is not leaving, unless that counts too) and its disk works."""
        if broker_id not in self._live_broker_epochs:
            return False
        if not include_shutting_down_brokers and broker_id in self.shutting_down_broker_ids:
            return False
        return partition not in self.replicas_on_offline_dirs.get(broker_id, ())

    def online_and_offline_replicas(
        self,
    ) -> tuple[set[PartitionAndReplica], set[PartitionAndReplica]]:
        online: set[PartitionAndReplica] = set()
        offline: set[PartitionAndReplica] = set()
        for replica in self.replicas_for_partitions(self.all_partitions):
            is_online = self.is_replica_online(replica.replica, replica.topic_partition)
            (online if is_online else offline).add(replica)
        return online, offline

    # Leadership

    def put_partition_leadership_info(
        self, partition: TopicPartition, info: LeaderIsrAndControllerEpoch
    ) -> None:
        was_imbalanced = self._is_imbalanced(partition)
        self._leadership[partition] = info
        self._count_imbalance(was_imbalanced, self._is_imbalanced(partition))

    def partition_leadership_info(
        self, partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch | None:
        return self._leadership.get(partition)

    @property
    def partitions_with_leaders(self) -> set[TopicPartition]:
        return {p for p in self._leadership if not self.is_topic_queued_up_for_deletion(p.topic)}

    @property
    def partitions_with_offline_leader(self) -> set[TopicPartition]:
        return {
            partition
            for partition, info in self._leadership.items()
            if not self.is_replica_online(info.leader_and_isr.leader, partition)
            and not self.is_topic_queued_up_for_deletion(partition.topic)
        }

    def partitions_led_by(self, broker_id: int) -> set[TopicPartition]:
        return {p for p, i in self._leadership.items() if i.leader_and_isr.leader == broker_id}

    # States

    def partition_state(self, partition: TopicPartition) -> PartitionState:
        return self._partition_states[partition]

    def put_partition_state(self, partition: TopicPartition, state: PartitionState) -> None:
        previous = self._partition_states.get(partition)
        self._partition_states[partition] = state
        # A topic being deleted goes through OFFLINE; that is no outage.
        if not self.is_topic_deletion_in_progress(partition.topic):
            was_offline = previous is PartitionState.OFFLINE
            self.offline_partition_count += (state is PartitionState.OFFLINE) - was_offline

    def put_partition_state_if_not_exists(
        self, partition: TopicPartition, state: PartitionState
    ) -> None:
        if partition not in self._partition_states:
            self.put_partition_state(partition, state)

    def partitions_in_state(
        self, *states: PartitionState, topic: str | None = None
    ) -> set[TopicPartition]:
        return {
            partition
            for partition, state in self._partition_states.items()
            if state in states and topic in (None, partition.topic)
        }

    def replica_state(self, replica: PartitionAndReplica) -> ReplicaState:
        return self._replica_states[replica]

    def put_replica_state(self, replica: PartitionAndReplica, state: ReplicaState) -> None:
        self._replica_states[replica] = state

    def put_replica_state_if_not_exists(
        self, replica: PartitionAndReplica, state: ReplicaState
    ) -> None:
        self._replica_states.setdefault(replica, state)

    def remove_replica_state(self, replica: PartitionAndReplica) -> None:
        self._replica_states.pop(replica, None)

    def replicas_in_state(self, topic: str, state: ReplicaState) -> set[PartitionAndReplica]:
        return {r for r in self.replicas_for_topic(topic) if self._replica_states.get(r) is state}

    def are_all_replicas_in_state(self, topic: str, state: ReplicaState) -> bool:
        replicas = self.replicas_for_topic(topic)
        return all(self._replica_states.get(replica) is state for replica in replicas)

    def is_any_replica_in_state(self, topic: str, state: ReplicaState) -> bool:
        return bool(self.replicas_in_state(topic, state))

    # Deletion

    def queue_topic_deletion(self, topics: Iterable[str]) -> None:
        for topic in set(topics) - self.topics_to_be_deleted:
            self.topics_to_be_deleted.add(topic)
            # A topic on its way out is not out of balance.
            imbalanced = sum(map(self._has_imbalance, self.partitions_for_topic(topic)))
            self.preferred_replica_imbalance_count -= imbalanced

    def begin_topic_deletion(self, topics: Iterable[str]) -> None:
        self.topics_with_deletion_started.update(topics)

    def is_topic_deletion_in_progress(self, topic: str) -> bool:
        return topic in self.topics_with_deletion_started

    def is_topic_queued_up_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_be_deleted

    def remove_topic(self, topic: str) -> None:
        """Forget a topic that is gone from the store."""
        for partition in self.partitions_for_topic(topic):
            self._count_imbalance(self._is_imbalanced(partition), False)
            self._leadership.pop(partition, None)
            if self._partition_states.pop(partition, None) is PartitionState.OFFLINE:
                self.offline_partition_count -= 1
        for replica in self.replicas_for_topic(topic):
            self.remove_replica_state(replica)
        self._assignments.pop(topic, None)
        self.topics_to_be_deleted.discard(topic)
        self.topics_with_deletion_started.discard(topic)
        self.topics_ineligible_for_deletion.discard(topic)
        self.all_topics.discard(topic)
        topic_id = self.topic_ids.pop(topic, None)
        if topic_id is not None:
            self.topic_names.pop(topic_id, None)

    # The count is kept up to date so that its gauge costs nothing

    def _is_imbalanced(self, partition: TopicPartition) -> bool:
        return not self.is_topic_queued_up_for_deletion(partition.topic) and self._has_imbalance(
            partition
        )

    def _has_imbalance(self, partition: TopicPartition) -> bool:
        info = self._leadership.get(partition)
        replicas = self.partition_replica_assignment(partition)
        return info is not None and bool(replicas) and info.leader_and_isr.leader != replicas[0]

    def _count_imbalance(self, before: bool, after: bool) -> None:
        self.preferred_replica_imbalance_count += after - before
