"""Moves partitions to other brokers.

ORS and TRS are the original and the target replicas, AR and RR those added and removed.

    until TRS ⊆ ISR:  write RS = ORS + TRS, AR, RR to the store; LeaderAndIsr with a new leader
                      epoch to RS; AR become NEW
    from then on:     AR become ONLINE; a leader among TRS; RR become OFFLINE and are deleted;
                      RS = TRS is written to the store
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kafkapy.common.errors import ControllerMovedError, Errors, KafkaStorageError
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
    IllegalBatchError,
)
from kafkapy.controller.controller_context import ControllerContext, PartitionAndReplica
from kafkapy.controller.controller_events import (
    ApiResult,
    ControllerEvent,
    ReassignmentTargets,
    ZkPartitionReassignment,
)
from kafkapy.controller.controller_zk_handlers import partition_reassignment_handler
from kafkapy.controller.election import ReassignPartitionLeaderElectionStrategy
from kafkapy.controller.partition_state import PartitionState
from kafkapy.controller.partition_state_machine import (
    PartitionStateMachine,
    StateChangeFailedError,
)
from kafkapy.controller.replica_state import ReplicaState
from kafkapy.controller.replica_state_machine import ReplicaStateMachine
from kafkapy.controller.topic_deletion_manager import TopicDeletionManager
from kafkapy.metadata.leader_and_isr import NO_LEADER, LeaderAndIsr, LeaderIsrAndControllerEpoch
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.utils.log_context import LogContext
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import MalformedZNodeError


class PartitionReassignmentManager:
    """Starts, advances, replaces and calls off reassignments. Belongs to the event thread.

    Ports: kafka.controller.KafkaController (onPartitionReassignment and what it calls)
    """

    def __init__(
        self,
        controller_id: int,
        *,
        context: ControllerContext,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
        partition_state_machine: PartitionStateMachine,
        replica_state_machine: ReplicaStateMachine,
        topic_deletion_manager: TopicDeletionManager,
        send_update_metadata: Callable[[Collection[TopicPartition]], None],
        put_event: Callable[[ControllerEvent], object],
    ) -> None:
        self._context = context  # constant after construction
        self._zk_client = zk_client
        self._batch = request_batch
        self._partition_state_machine = partition_state_machine
        self._replica_state_machine = replica_state_machine
        self._topic_deletion_manager = topic_deletion_manager
        self._send_update_metadata = send_update_metadata
        self._put_event = put_event
        self._handler = partition_reassignment_handler(put_event)
        self._log = LogContext(f"[Controller id={controller_id}] ").logger(__name__)

    def unregister(self) -> None:
        self._zk_client.unregister_znode_change_handler(self._handler.path)

    def initialize(self) -> None:
        """After a failover: what the store asks for, then what was under way."""
        resumed = self.process_zk_reassignment()
        self.maybe_resume(lambda partition, assignment: partition not in resumed)

    def process_zk_reassignment(self) -> set[TopicPartition]:
        """Do what /admin/reassign_partitions asks for, if it is there; the partitions started."""
        if not self._zk_client.register_znode_change_handler_and_check_existence(self._handler):
            return set()
        results = self._start(dict(self._asked_for_in_store()))
        failed = {p: r for p, r in results.items() if r.error is not Errors.NONE}
        if failed:
            self._log.warning("Reassignments asked for in the store failed: %s", failed)
            self._maybe_remove_from_zk(lambda partition, replicas: partition in failed)
        return set(results) - set(failed)

    def process_api_reassignment(
        self, reassignments: ReassignmentTargets
    ) -> dict[TopicPartition, ApiResult]:
        results: dict[TopicPartition, ApiResult] = {}
        valid: ReassignmentTargets = {}
        for partition, targets in reassignments.items():
            error = self._validate(partition, targets) if targets is not None else None
            if error is not None:
                results[partition] = error
            else:
                valid[partition] = targets
        # The latest wish counts, so one in the store for the same partition is over.
        self._maybe_remove_from_zk(lambda partition, replicas: partition in valid)
        results.update(self._start(valid))
        return results

    def current_reassignments(self) -> dict[TopicPartition, ReplicaAssignment]:
        return {
            partition: self._context.partition_full_replica_assignment(partition)
            for partition in self._context.partitions_being_reassigned
        }

    def maybe_resume(
        self, should_resume: Callable[[TopicPartition, ReplicaAssignment], bool]
    ) -> None:
        for partition, assignment in self.current_reassignments().items():
            if should_resume(partition, assignment):
                self._on_partition_reassignment(partition, assignment)

    def maybe_complete(self, partition: TopicPartition) -> None:
        """The partition's ISR has changed: go on if the targets are all in it."""
        if partition in self._context.partitions_being_reassigned:
            assignment = self._context.partition_full_replica_assignment(partition)
            if self._is_complete(partition, assignment):
                self._log.info("Target replicas of %s have all caught up", partition)
                self._on_partition_reassignment(partition, assignment)

    def _start(self, reassignments: ReassignmentTargets) -> dict[TopicPartition, ApiResult]:
        results = {}
        for partition, targets in reassignments.items():
            current = self._context.partition_full_replica_assignment(partition)
            if targets is None and current.is_being_reassigned:
                targets = current.origin_replicas
            if targets is None:
                error = Errors.NO_REASSIGNMENT_IN_PROGRESS
                results[partition] = ApiResult(error, error.message)
            elif not current.replicas or self._context.is_topic_queued_up_for_deletion(
                partition.topic
            ):
                results[partition] = ApiResult(
                    Errors.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
                )
            else:
                results[partition] = self._try_start(partition, current.reassign_to(targets))
        return results

    def _try_start(self, partition: TopicPartition, assignment: ReplicaAssignment) -> ApiResult:
        try:
            self._on_partition_reassignment(partition, assignment)
        except (ControllerMovedError, IllegalBatchError, KafkaStorageError):
            raise
        except Exception as error:
            self._log.exception("Error completing reassignment of partition %s", partition)
            return ApiResult.of(error)
        return ApiResult()

    def _validate(self, partition: TopicPartition, targets: Sequence[int]) -> ApiResult | None:
        if not targets:
            problem = "Empty replica list specified in partition reassignment."
        elif len(set(targets)) != len(targets):
            problem = f"Duplicate replica ids in partition reassignment replica list: {targets}"
        elif min(targets) < 0:
            problem = f"Invalid broker id in replica list: {targets}"
        else:
            current = self._context.partition_full_replica_assignment(partition)
            adding = current.reassign_to(targets).adding_replicas
            if set(adding) <= self._context.live_broker_ids:
                return None
            problem = f"Replica assignment has brokers that are not alive. Replica list: {adding}"
        return ApiResult(Errors.INVALID_REPLICA_ASSIGNMENT, problem)

    def _on_partition_reassignment(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        self._topic_deletion_manager.mark_topics_ineligible_for_deletion(
            {partition.topic}, "topic reassignment in progress"
        )
        self._update_current_reassignment(partition, assignment)
        if not self._is_complete(partition, assignment):
            self._update_leader_epoch_and_send(partition, assignment)
            self._change_replicas(partition, assignment.adding_replicas, ReplicaState.NEW)
            return
        self._change_replicas(partition, assignment.adding_replicas, ReplicaState.ONLINE)
        completed = ReplicaAssignment(assignment.target_replicas)
        self._context.update_partition_full_replica_assignment(partition, completed)
        self._move_leader_if_required(partition, completed)
        self._stop_replicas(partition, assignment.removing_replicas)
        self._write_assignment(partition, completed)
        self._remove_from_reassigning(partition, completed)
        self._send_update_metadata((partition,))
        self._topic_deletion_manager.resume_deletion_for_topics({partition.topic})

    def _update_current_reassignment(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        current = self._context.partition_full_replica_assignment(partition)
        if current != assignment:
            self._write_assignment(partition, assignment)
            self._context.update_partition_full_replica_assignment(partition, assignment)
            # Replacing a reassignment may leave replicas that it added and nobody wants now.
            unneeded = [r for r in current.replicas if r not in assignment.replicas]
            self._stop_replicas(partition, unneeded)
        self._context.partitions_being_reassigned.add(partition)

    def _is_complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> bool:
        if not assignment.is_being_reassigned:
            return True
        info = self._zk_client.get_topic_partition_state(partition)
        return info is not None and set(assignment.target_replicas) <= set(info.leader_and_isr.isr)

    def _move_leader_if_required(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        info = self._context.partition_leadership_info(partition)
        leader = info.leader_and_isr.leader if info is not None else NO_LEADER
        if leader in assignment.replicas and self._context.is_replica_online(leader, partition):
            # The leader stays, but it and the others must learn of the new replica set.
            self._update_leader_epoch_and_send(partition, assignment)
        else:
            self._partition_state_machine.handle_state_changes(
                (partition,), PartitionState.ONLINE, ReassignPartitionLeaderElectionStrategy()
            )

    def _update_leader_epoch_and_send(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        info = self._update_leader_epoch(partition)
        self._batch.new_batch()
        # Not new: a replica whose directory is offline must not be made again in another one.
        self._batch.add_leader_and_isr_request_for_brokers(
            assignment.replicas, partition, info, assignment=assignment, is_new=False
        )
        self._batch.send_requests_to_brokers(self._context.epoch)

    def _update_leader_epoch(self, partition: TopicPartition) -> LeaderIsrAndControllerEpoch:
        while True:
            found = self._zk_client.get_topic_partition_state(partition)
            if found is None:
                raise StateChangeFailedError(f"Partition {partition} has no state in the store")
            if found.controller_epoch > self._context.epoch:
                raise StateChangeFailedError(
                    f"The state of {partition} was written by a controller of epoch "
                    f"{found.controller_epoch}, after ours ({self._context.epoch})"
                )
            update = self._zk_client.update_leader_and_isr(
                {partition: found.leader_and_isr.new_epoch()},
                self._context.epoch,
                self._context.epoch_zk_version,
            )
            outcome = update.finished_partitions.get(partition)
            if isinstance(outcome, LeaderAndIsr):
                info = LeaderIsrAndControllerEpoch(outcome, self._context.epoch)
                self._context.put_partition_leadership_info(partition, info)
                return info
            if outcome is not None:
                raise outcome

    def _stop_replicas(self, partition: TopicPartition, replicas: Sequence[int]) -> None:
        for state in (
            ReplicaState.OFFLINE,
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,
            ReplicaState.NON_EXISTENT,
        ):
            self._change_replicas(partition, replicas, state)

    def _change_replicas(
        self, partition: TopicPartition, replicas: Sequence[int], state: ReplicaState
    ) -> None:
        self._replica_state_machine.handle_state_changes(
            [PartitionAndReplica(partition, replica) for replica in replicas], state
        )

    def _write_assignment(self, partition: TopicPartition, assignment: ReplicaAssignment) -> None:
        topic = partition.topic
        assignments = self._context.partition_full_replica_assignment_for_topic(topic)
        self._zk_client.set_topic_assignment(
            topic,
            self._context.topic_ids.get(topic),
            {**assignments, partition: assignment},
            self._context.epoch_zk_version,
        )

    def _remove_from_reassigning(
        self, partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        self._maybe_remove_from_zk(
            lambda other, replicas: other == partition and replicas == assignment.replicas
        )
        self._context.partitions_being_reassigned.discard(partition)

    def _asked_for_in_store(self) -> dict[TopicPartition, tuple[int, ...]]:
        try:
            return self._zk_client.get_partition_reassignment()
        except MalformedZNodeError as error:
            # A slip of somebody's hand must not keep every broker from becoming controller.
            self._log.warning("Ignoring a reassignment: %s", error)
            return {}

    def _maybe_remove_from_zk(
        self, should_remove: Callable[[TopicPartition, tuple[int, ...]], bool]
    ) -> None:
        in_store = self._asked_for_in_store()
        remaining = {p: r for p, r in in_store.items() if not should_remove(p, r)}
        if len(remaining) == len(in_store):
            return
        version = self._context.epoch_zk_version
        if remaining:
            self._zk_client.set_or_create_partition_reassignment(remaining, version)
            return
        self._zk_client.delete_partition_reassignment(version)
        # Sets the watch for the next reassignment, or finds it if it was quicker.
        self._put_event(ZkPartitionReassignment())
