"""Moves replicas between their states, telling their brokers on the way."""

from __future__ import annotations

from collections.abc import Collection

from kafkapy.common.errors import ControllerMovedError, KafkaError, KafkaStorageError
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
    IllegalBatchError,
)
from kafkapy.controller.controller_context import ControllerContext, PartitionAndReplica
from kafkapy.controller.replica_state import ReplicaState
from kafkapy.controller.state_change_logger import StateChangeLogger
from kafkapy.metadata.leader_and_isr import (
    NO_LEADER,
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
)
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.utils.log_context import LogContext
from kafkapy.zk.kafka_zk_client import KafkaZkClient


class ReplicaStateMachine:
    """Owns the states of all replicas. Belongs to the event thread.

    NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → DELETION_STARTED → DELETION_SUCCESSFUL → NON_EXISTENT,
    with DELETION_INELIGIBLE for a deletion that has to wait. An illegal step is logged and changes
    nothing.

    Ports: kafka.controller.ZkReplicaStateMachine
    """

    def __init__(
        self,
        controller_id: int,
        *,
        context: ControllerContext,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
    ) -> None:
        self._context = context  # constant after construction
        self._zk_client = zk_client
        self._batch = request_batch
        self._state_changes = StateChangeLogger(controller_id)
        self._log = LogContext(f"[ReplicaStateMachine controllerId={controller_id}] ").logger(
            __name__
        )

    def startup(self) -> None:
        """Take the states from which brokers live, and tell these what they have."""
        online, offline = self._context.online_and_offline_replicas()
        for replica in online:
            self._context.put_replica_state(replica, ReplicaState.ONLINE)
        for replica in offline:
            # Should its topic be in the queue for deletion, that has to wait for the broker.
            self._context.put_replica_state(replica, ReplicaState.DELETION_INELIGIBLE)
        self.handle_state_changes(online, ReplicaState.ONLINE)
        self.handle_state_changes(offline, ReplicaState.OFFLINE)

    def handle_state_changes(
        self, replicas: Collection[PartitionAndReplica], target: ReplicaState
    ) -> None:
        """Raises only ControllerMovedError and IllegalBatchError; other failures are logged."""
        if not replicas:
            return
        by_broker: dict[int, list[PartitionAndReplica]] = {}
        for replica in sorted(replicas):
            by_broker.setdefault(replica.replica, []).append(replica)
        try:
            self._batch.new_batch()
            for broker_id, broker_replicas in by_broker.items():
                self._do_handle_state_changes(broker_id, broker_replicas, target)
            self._batch.send_requests_to_brokers(self._context.epoch)
        except (ControllerMovedError, IllegalBatchError, KafkaStorageError):
            self._log.exception(
                "The controller cannot go on after moving replicas to %s", target.name
            )
            raise
        except Exception:
            self._log.exception("Error while moving some replicas to %s", target.name)

    def _do_handle_state_changes(
        self, broker_id: int, replicas: list[PartitionAndReplica], target: ReplicaState
    ) -> None:
        valid = []
        for replica in replicas:
            self._context.put_replica_state_if_not_exists(replica, ReplicaState.NON_EXISTENT)
            if self._context.replica_state(replica) in target.valid_previous_states:
                valid.append(replica)
            else:
                self._log_invalid_transition(replica, target)
        match target:
            case ReplicaState.NEW:
                self._to_new(broker_id, valid)
            case ReplicaState.ONLINE:
                self._to_online(broker_id, valid)
            case ReplicaState.OFFLINE:
                self._to_offline(broker_id, valid)
            case ReplicaState.NON_EXISTENT:
                self._to_non_existent(broker_id, valid)
            case _:
                for replica in valid:
                    self._change_state(replica, target)
                    if target is ReplicaState.DELETION_STARTED:
                        self._batch.add_stop_replica_request_for_brokers(
                            (broker_id,), replica.topic_partition, delete_partition=True
                        )

    def _to_new(self, broker_id: int, replicas: list[PartitionAndReplica]) -> None:
        for replica in replicas:
            partition = replica.topic_partition
            info = self._context.partition_leadership_info(partition)
            if info is not None:
                if info.leader_and_isr.leader == broker_id:
                    self._log_failed(
                        replica, ReplicaState.NEW, "it is being requested to become leader"
                    )
                    continue
                self._tell((broker_id,), partition, info, is_new=True)
            self._change_state(replica, ReplicaState.NEW)

    def _to_online(self, broker_id: int, replicas: list[PartitionAndReplica]) -> None:
        for replica in replicas:
            partition = replica.topic_partition
            if self._context.replica_state(replica) is ReplicaState.NEW:
                assignment = self._context.partition_full_replica_assignment(partition)
                if broker_id not in assignment.replicas:
                    self._log.error(
                        "Adding replica %s, which is not part of the assignment %s",
                        replica,
                        assignment,
                    )
                    self._context.update_partition_full_replica_assignment(
                        partition,
                        ReplicaAssignment(
                            (*assignment.replicas, broker_id),
                            assignment.adding_replicas,
                            assignment.removing_replicas,
                        ),
                    )
            else:
                info = self._context.partition_leadership_info(partition)
                if info is not None:
                    self._tell((broker_id,), partition, info, is_new=False)
            self._change_state(replica, ReplicaState.ONLINE)

    def _to_offline(self, broker_id: int, replicas: list[PartitionAndReplica]) -> None:
        with_leader = []
        for replica in replicas:
            partition = replica.topic_partition
            self._batch.add_stop_replica_request_for_brokers(
                (broker_id,), partition, delete_partition=False
            )
            if self._context.partition_leadership_info(partition) is not None:
                with_leader.append(partition)
            else:
                self._change_state(replica, ReplicaState.OFFLINE)
                self._batch.add_update_metadata_request_for_brokers(
                    self._context.live_or_shutting_down_broker_ids, (partition,)
                )
        for partition, info in self._remove_replica_from_isr(broker_id, with_leader).items():
            if not self._context.is_topic_queued_up_for_deletion(partition.topic):
                others = [
                    r
                    for r in self._context.partition_replica_assignment(partition)
                    if r != broker_id
                ]
                self._tell(others, partition, info, is_new=False)
            self._change_state(PartitionAndReplica(partition, broker_id), ReplicaState.OFFLINE)

    def _to_non_existent(self, broker_id: int, replicas: list[PartitionAndReplica]) -> None:
        for replica in replicas:
            partition = replica.topic_partition
            assignment = self._context.partition_full_replica_assignment(partition)
            self._context.update_partition_full_replica_assignment(
                partition, assignment.remove_replica(broker_id)
            )
            self._change_state(replica, ReplicaState.NON_EXISTENT)
            self._context.remove_replica_state(replica)

    def _remove_replica_from_isr(
        self, broker_id: int, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, LeaderIsrAndControllerEpoch]:
        """The states of the partitions now; without those that failed, which are logged."""
        results: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        remaining = partitions
        while remaining:
            # A broker may change the ISR between our read and our write: read again.
            finished, remaining = self._do_remove_replica_from_isr(broker_id, remaining)
            for partition, outcome in finished.items():
                if isinstance(outcome, LeaderIsrAndControllerEpoch):
                    results[partition] = outcome
                else:
                    replica = PartitionAndReplica(partition, broker_id)
                    self._log_failed(replica, ReplicaState.OFFLINE, outcome)
        return results

    def _do_remove_replica_from_isr(
        self, broker_id: int, partitions: list[TopicPartition]
    ) -> tuple[
        dict[TopicPartition, LeaderIsrAndControllerEpoch | KafkaError], list[TopicPartition]
    ]:
        finished: dict[TopicPartition, LeaderIsrAndControllerEpoch | KafkaError] = {}
        try:
            states = self._zk_client.get_topic_partition_states(partitions)
        except KafkaStorageError:
            raise
        except KafkaError as error:
            return dict.fromkeys(partitions, error), []
        adjusted: dict[TopicPartition, LeaderAndIsr] = {}
        unchanged: dict[TopicPartition, LeaderAndIsr] = {}
        for partition in partitions:
            info = states.get(partition)
            if info is None:
                if not self._context.is_topic_queued_up_for_deletion(partition.topic):
                    finished[partition] = KafkaError("its partition has no state in the store")
                continue
            state = info.leader_and_isr
            if info.controller_epoch > self._context.epoch:
                finished[partition] = KafkaError(
                    f"its partition's state was written by a controller of epoch "
                    f"{info.controller_epoch}, after ours ({self._context.epoch})"
                )
            elif broker_id in state.isr:
                leader = NO_LEADER if state.leader == broker_id else state.leader
                # The last one in sync stays in the ISR: it alone may lead again.
                isr = [r for r in state.isr if r != broker_id] or state.isr
                adjusted[partition] = state.new_leader_and_isr(leader, isr)
            else:
                unchanged[partition] = state
        retry: list[TopicPartition] = []
        results: dict[TopicPartition, LeaderAndIsr | KafkaError] = dict(unchanged)
        if adjusted:
            update = self._zk_client.update_leader_and_isr(
                adjusted, self._context.epoch, self._context.epoch_zk_version
            )
            results.update(update.finished_partitions)
            retry = update.partitions_to_retry
        for partition, outcome in results.items():
            if isinstance(outcome, LeaderAndIsr):
                state_info = LeaderIsrAndControllerEpoch(outcome, self._context.epoch)
                self._context.put_partition_leadership_info(partition, state_info)
                finished[partition] = state_info
            else:
                finished[partition] = outcome
        return finished, retry

    def _tell(
        self,
        broker_ids: Collection[int],
        partition: TopicPartition,
        info: LeaderIsrAndControllerEpoch,
        *,
        is_new: bool,
    ) -> None:
        self._batch.add_leader_and_isr_request_for_brokers(
            broker_ids,
            partition,
            info,
            assignment=self._context.partition_full_replica_assignment(partition),
            is_new=is_new,
        )

    def _change_state(self, replica: PartitionAndReplica, target: ReplicaState) -> None:
        self._state_changes.with_controller_epoch(self._context.epoch).debug(
            "Changed state of replica %s from %s to %s",
            replica,
            self._context.replica_state(replica).name,
            target.name,
        )
        self._context.put_replica_state(replica, target)

    def _log_invalid_transition(self, replica: PartitionAndReplica, target: ReplicaState) -> None:
        legal = ", ".join(state.name for state in sorted(target.valid_previous_states))
        self._log_failed(replica, target, f"that is legal from {legal} only")

    def _log_failed(
        self, replica: PartitionAndReplica, target: ReplicaState, reason: object
    ) -> None:
        self._state_changes.with_controller_epoch(self._context.epoch).error(
            "Replica %s did not change from %s to %s: %s",
            replica,
            self._context.replica_state(replica).name,
            target.name,
            reason,
        )
