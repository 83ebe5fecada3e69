"""Deletes topics, replica by replica, as brokers allow it."""

from __future__ import annotations

from collections.abc import Collection

from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_context import ControllerContext, PartitionAndReplica
from kafkapy.controller.controller_deletion_client import ControllerDeletionClient
from kafkapy.controller.partition_state import PartitionState
from kafkapy.controller.partition_state_machine import PartitionStateMachine
from kafkapy.controller.replica_state import ReplicaState
from kafkapy.controller.replica_state_machine import ReplicaStateMachine
from kafkapy.utils.log_context import LogContext


class TopicDeletionManager:
    """Takes topics from the queue for deletion to their end. Belongs to the event thread.

    A topic in the queue halts (is ineligible) while a replica is offline, a deletion failed, or
    its partitions are being reassigned, and goes on when that ends. Its replicas go OFFLINE,
    DELETION_STARTED (StopReplica with delete is sent), then SUCCESSFUL or INELIGIBLE by the
    broker's answer; when all are SUCCESSFUL its znodes are removed.

    Ports: kafka.controller.TopicDeletionManager
    """

    def __init__(
        self,
        controller_id: int,
        *,
        is_delete_topic_enabled: bool,
        context: ControllerContext,
        replica_state_machine: ReplicaStateMachine,
        partition_state_machine: PartitionStateMachine,
        client: ControllerDeletionClient,
    ) -> None:
        self.is_delete_topic_enabled = is_delete_topic_enabled
        self._context = context
        self._replica_state_machine = replica_state_machine
        self._partition_state_machine = partition_state_machine
        self._client = client
        self._log = LogContext(f"[Topic Deletion Manager {controller_id}] ").logger(__name__)

    def init(self, topics_to_be_deleted: set[str], topics_ineligible: set[str]) -> None:
        """Take up what an earlier controller left, or drop it when deletion is off."""
        self._log.info(
            "Topics waiting for deletion: %s, of which halted: %s",
            sorted(topics_to_be_deleted),
            sorted(topics_ineligible & topics_to_be_deleted),
        )
        if self.is_delete_topic_enabled:
            self._context.queue_topic_deletion(topics_to_be_deleted)
            self._context.topics_ineligible_for_deletion.update(
                topics_ineligible & topics_to_be_deleted
            )
        else:
            self._client.delete_topic_deletions(
                topics_to_be_deleted, self._context.epoch_zk_version
            )

    def try_topic_deletion(self) -> None:
        if self.is_delete_topic_enabled:
            self._resume_deletions()

    def enqueue_topics_for_deletion(self, topics: set[str]) -> None:
        if self.is_delete_topic_enabled:
            self._context.queue_topic_deletion(topics)
            self._resume_deletions()

    def resume_deletion_for_topics(self, topics: set[str]) -> None:
        """What halted these topics may be over: a broker is back, a reassignment is done."""
        if self.is_delete_topic_enabled:
            topics = topics & self._context.topics_to_be_deleted
            if topics:
                self._context.topics_ineligible_for_deletion -= topics
                self._resume_deletions()

    def fail_replica_deletion(self, replicas: Collection[PartitionAndReplica]) -> None:
        """These replicas could not be deleted; their topics halt until their broker returns."""
        if not self.is_delete_topic_enabled:
            return
        failed = [r for r in replicas if self._context.is_topic_queued_up_for_deletion(r.topic)]
        if failed:
            topics = {replica.topic for replica in failed}
            self._replica_state_machine.handle_state_changes(
                failed, ReplicaState.DELETION_INELIGIBLE
            )
            self.mark_topics_ineligible_for_deletion(topics, "replica deletion failure")
            self._resume_deletions()

    def complete_replica_deletion(self, replicas: Collection[PartitionAndReplica]) -> None:
        deleted = [r for r in replicas if self._context.is_topic_queued_up_for_deletion(r.topic)]
        self._log.debug("Deletion successfully completed for replicas %s", deleted)
        self._replica_state_machine.handle_state_changes(deleted, ReplicaState.DELETION_SUCCESSFUL)
        self._resume_deletions()

    def mark_topics_ineligible_for_deletion(self, topics: set[str], reason: str) -> None:
        if self.is_delete_topic_enabled:
            halted = self._context.topics_to_be_deleted & topics
            self._context.topics_ineligible_for_deletion |= halted
            if halted:
                self._log.info("Halted deletion of topics %s due to %s", sorted(halted), reason)

    def is_topic_queued_up_for_deletion(self, topic: str) -> bool:
        return self.is_delete_topic_enabled and self._context.is_topic_queued_up_for_deletion(topic)

    def _is_deletion_in_progress(self, topic: str) -> bool:
        return self._context.is_any_replica_in_state(topic, ReplicaState.DELETION_STARTED)

    def _is_eligible_for_deletion(self, topic: str) -> bool:
        return (
            self._context.is_topic_queued_up_for_deletion(topic)
            and not self._is_deletion_in_progress(topic)
            and topic not in self._context.topics_ineligible_for_deletion
        )

    def _resume_deletions(self) -> None:
        for_retry: set[str] = set()
        eligible: set[str] = set()
        for topic in sorted(self._context.topics_to_be_deleted):
            if self._context.are_all_replicas_in_state(topic, ReplicaState.DELETION_SUCCESSFUL):
                self._complete_delete_topic(topic)
                self._log.info("Deletion of topic %s successfully completed", topic)
            elif not self._is_deletion_in_progress(topic) and self._context.is_any_replica_in_state(
                topic, ReplicaState.DELETION_INELIGIBLE
            ):
                for_retry.add(topic)
            if self._is_eligible_for_deletion(topic):
                eligible.add(topic)
        if for_retry:
            self._retry_deletion_for_ineligible_replicas(for_retry)
        if eligible:
            self._on_topic_deletion(eligible)

    def _retry_deletion_for_ineligible_replicas(self, topics: set[str]) -> None:
        """Back to OFFLINE, from where DELETION_STARTED is a legal step."""
        failed = [
            replica
            for topic in topics
            for replica in self._context.replicas_in_state(topic, ReplicaState.DELETION_INELIGIBLE)
        ]
        self._log.debug("Retrying deletion of topics %s for replicas %s", sorted(topics), failed)
        self._replica_state_machine.handle_state_changes(failed, ReplicaState.OFFLINE)

    def _complete_delete_topic(self, topic: str) -> None:
        # Without this the removal of the topic's znode would fire its modification handler.
        self._client.mute_partition_modifications(topic)
        deleted = self._context.replicas_in_state(topic, ReplicaState.DELETION_SUCCESSFUL)
        self._replica_state_machine.handle_state_changes(deleted, ReplicaState.NON_EXISTENT)
        self._client.delete_topic(topic, self._context.epoch_zk_version)
        self._context.remove_topic(topic)

    def _on_topic_deletion(self, topics: set[str]) -> None:
        self._log.info("Topic deletion for %s", ",".join(sorted(topics)))
        unseen = topics - self._context.topics_with_deletion_started
        if unseen:
            partitions = self._partitions_of(unseen)
            self._partition_state_machine.handle_state_changes(partitions, PartitionState.OFFLINE)
            self._partition_state_machine.handle_state_changes(
                partitions, PartitionState.NON_EXISTENT
            )
            self._context.begin_topic_deletion(unseen)
        # Brokers learn that the topics are going before their replicas are stopped, so that
        # clients are refused rather than sent in circles.
        self._client.send_metadata_update(self._partitions_of(topics))
        self._on_partition_deletion(topics)

    def _on_partition_deletion(self, topics: set[str]) -> None:
        dead_replicas: list[PartitionAndReplica] = []
        for_deletion: list[PartitionAndReplica] = []
        ineligible: set[str] = set()
        for topic in topics:
            deleted = self._context.replicas_in_state(topic, ReplicaState.DELETION_SUCCESSFUL)
            for replica in self._context.replicas_for_topic(topic):
                if not self._context.is_replica_online(replica.replica, replica.topic_partition):
                    dead_replicas.append(replica)
                    ineligible.add(topic)
                elif replica not in deleted:
                    for_deletion.append(replica)
        machine = self._replica_state_machine
        machine.handle_state_changes(dead_replicas, ReplicaState.DELETION_INELIGIBLE)
        machine.handle_state_changes(for_deletion, ReplicaState.OFFLINE)
        machine.handle_state_changes(for_deletion, ReplicaState.DELETION_STARTED)
        self.mark_topics_ineligible_for_deletion(ineligible, "offline replicas")

    def _partitions_of(self, topics: set[str]) -> list[TopicPartition]:
        return [p for topic in topics for p in self._context.partitions_for_topic(topic)]
