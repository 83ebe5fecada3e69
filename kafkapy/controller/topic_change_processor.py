"""What follows from topics and partitions coming and going in the store."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kafkapy.common.errors import Errors
from kafkapy.common.types import TopicPartition, random_topic_id
from kafkapy.controller.controller_context import ControllerContext, PartitionAndReplica
from kafkapy.controller.controller_zk_handlers import PartitionModificationsWatch
from kafkapy.controller.election import OfflinePartitionLeaderElectionStrategy
from kafkapy.controller.partition_state import PartitionState
from kafkapy.controller.partition_state_machine import PartitionStateMachine
from kafkapy.controller.replica_state import ReplicaState
from kafkapy.controller.replica_state_machine import ReplicaStateMachine
from kafkapy.controller.topic_deletion_manager import TopicDeletionManager
from kafkapy.utils.log_context import LogContext
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import MalformedZNodeError, TopicIdReplicaAssignment


class TopicChangeProcessor:
    """Keeps the picture of the topics, and drives both state machines by it.

    Belongs to the event thread.

    Ports: kafka.controller.KafkaController (processTopicChange, processPartitionModifications,
    processTopicDeletion, onNewPartitionCreation, processTopicIds)
    """

    def __init__(
        self,
        controller_id: int,
        *,
        context: ControllerContext,
        zk_client: KafkaZkClient,
        partition_state_machine: PartitionStateMachine,
        replica_state_machine: ReplicaStateMachine,
        topic_deletion_manager: TopicDeletionManager,
        partition_modifications: PartitionModificationsWatch,
    ) -> None:
        self._context = context  # constant after construction
        self._zk_client = zk_client
        self._partition_state_machine = partition_state_machine
        self._replica_state_machine = replica_state_machine
        self._topic_deletion_manager = topic_deletion_manager
        self._partition_modifications = partition_modifications
        self._log = LogContext(f"[Controller id={controller_id}] ").logger(__name__)

    def initialize(self) -> None:
        """After a failover: which topics are there, with which ids, replicas and leaders."""
        topics = self._zk_client.get_all_topics_in_cluster(register_watch=True)
        self._context.set_all_topics(topics)
        for assignment in self._load(topics):
            for partition, replicas in assignment.assignment.items():
                if replicas.is_being_reassigned:
                    self._context.partitions_being_reassigned.add(partition)
        self.update_leader_and_isr_cache(sorted(self._context.all_partitions))

    def process_topic_change(self) -> None:
        topics = self._zk_client.get_all_topics_in_cluster(register_watch=True)
        new = topics - self._context.all_topics
        deleted = self._context.all_topics - topics
        for topic in deleted:
            self._partition_modifications.unwatch(topic)
            self._context.remove_topic(topic)
        loaded = self._load(new)
        # Only now: should loading fail, the topics are still new at the next change.
        self._context.set_all_topics(topics)
        self._log.info("New topics: %s, deleted topics: %s", sorted(new), sorted(deleted))
        self._on_new_partition_creation(
            [partition for topic in loaded for partition in topic.assignment]
        )

    def process_partition_modifications(self, topic: str) -> None:
        """More partitions, or our own writes of reassignments, which need nothing."""
        assignments = self._zk_client.get_full_replica_assignment_for_topics((topic,))
        added = {
            partition: assignment
            for partition, assignment in assignments.items()
            if not self._context.partition_replica_assignment(partition)
        }
        if self._topic_deletion_manager.is_topic_queued_up_for_deletion(topic):
            if added:
                self._log.warning(
                    "Skipping adding partitions %s: topic %s is being deleted", list(added), topic
                )
                self._restore_assignment(topic)
        elif added and topic in self._context.all_topics:
            self._log.info("New partitions to be added: %s", added)
            for partition, assignment in added.items():
                self._context.update_partition_full_replica_assignment(partition, assignment)
            self._on_new_partition_creation(list(added))

    def process_topic_deletion(self) -> None:
        requested = set(self._zk_client.get_topic_deletions())
        unknown = requested - self._context.all_topics
        if unknown:
            self._log.warning("Ignoring deletion of topics that do not exist: %s", sorted(unknown))
            self._zk_client.delete_topic_deletions(sorted(unknown), self._context.epoch_zk_version)
        topics = requested - unknown
        if not topics:
            return
        if not self._topic_deletion_manager.is_delete_topic_enabled:
            self._log.info("Removing %s: topic deletion is off", sorted(topics))
            self._zk_client.delete_topic_deletions(sorted(topics), self._context.epoch_zk_version)
            return
        self._log.info("Starting topic deletion for topics %s", sorted(topics))
        # Queued first, as only a queued topic can be halted.
        self._context.queue_topic_deletion(topics)
        self._topic_deletion_manager.mark_topics_ineligible_for_deletion(
            {p.topic for p in self._context.partitions_being_reassigned},
            "topic reassignment in progress",
        )
        self._topic_deletion_manager.enqueue_topics_for_deletion(topics)

    def topic_deletions_in_progress(self) -> tuple[set[str], set[str]]:
        """After a failover: the topics to be deleted, and the topics that could not be now."""
        context = self._context
        with_offline_replicas = {
            replica.topic for replica in context.online_and_offline_replicas()[1]
        }
        being_reassigned = {p.topic for p in context.partitions_being_reassigned}
        return set(self._zk_client.get_topic_deletions()), with_offline_replicas | being_reassigned

    def process_stop_replica_response(
        self,
        replica_id: int,
        request_error: Errors,
        partition_errors: dict[TopicPartition, Errors],
    ) -> None:
        failed = {
            PartitionAndReplica(partition, replica_id)
            for partition, error in partition_errors.items()
            if request_error is not Errors.NONE or error is not Errors.NONE
        }
        if failed:
            self._log.warning("Deletion of replicas failed: %s", partition_errors)
        self._topic_deletion_manager.fail_replica_deletion(failed)
        deleted = {PartitionAndReplica(p, replica_id) for p in partition_errors} - failed
        if deleted:
            self._topic_deletion_manager.complete_replica_deletion(deleted)

    def update_leader_and_isr_cache(self, partitions: Sequence[TopicPartition]) -> None:
        for partition, info in self._zk_client.get_topic_partition_states(partitions).items():
            self._context.put_partition_leadership_info(partition, info)

    def _load(self, topics: Collection[str]) -> list[TopicIdReplicaAssignment]:
        """Read assignments and ids into the context; ids are given to topics that have none."""
        if not topics:
            return []
        for topic in topics:
            # Before the read, which sets the watch.
            self._partition_modifications.watch(topic)
        found = self._read(sorted(topics))
        without_id = {t.topic: t.assignment for t in found if t.topic_id is None and t.assignment}
        new_ids = {topic: random_topic_id() for topic in without_id}
        if without_id:
            self._zk_client.set_topic_ids(without_id, new_ids, self._context.epoch_zk_version)
        for topic_assignment in found:
            topic_id = topic_assignment.topic_id or new_ids.get(topic_assignment.topic)
            if topic_id is not None:
                self._context.add_topic_id(topic_assignment.topic, topic_id)
            for partition, assignment in topic_assignment.assignment.items():
                self._context.update_partition_full_replica_assignment(partition, assignment)
        return found

    def _read(self, topics: Sequence[str]) -> list[TopicIdReplicaAssignment]:
        """Without the topics whose znodes cannot be understood: the others must live on."""
        try:
            return self._zk_client.get_replica_assignment_and_topic_id_for_topics(topics)
        except MalformedZNodeError as error:
            if len(topics) == 1:
                self._log.error("Leaving out topic %s: %s", topics[0], error)
                return []
        return [found for topic in topics for found in self._read((topic,))]

    def _on_new_partition_creation(self, partitions: Collection[TopicPartition]) -> None:
        if not partitions:
            return
        replicas = self._context.replicas_for_partitions(partitions)
        self._partition_state_machine.handle_state_changes(partitions, PartitionState.NEW)
        self._replica_state_machine.handle_state_changes(replicas, ReplicaState.NEW)
        self._partition_state_machine.handle_state_changes(
            partitions, PartitionState.ONLINE, OfflinePartitionLeaderElectionStrategy()
        )
        self._replica_state_machine.handle_state_changes(replicas, ReplicaState.ONLINE)

    def _restore_assignment(self, topic: str) -> None:
        self._zk_client.set_topic_assignment(
            topic,
            self._context.topic_ids.get(topic),
            self._context.partition_full_replica_assignment_for_topic(topic),
            self._context.epoch_zk_version,
        )
