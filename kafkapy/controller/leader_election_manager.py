"""Leader elections that somebody asked for, and those that keep leadership in balance."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kafkapy.common.errors import Errors
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.controller.controller_events import (
    ApiResult,
    ControllerEvent,
    ElectionResults,
    ElectionTrigger,
    ElectionType,
)
from kafkapy.controller.controller_zk_handlers import preferred_replica_election_handler
from kafkapy.controller.election import (
    OfflinePartitionLeaderElectionStrategy,
    PartitionLeaderElectionStrategy,
    PreferredReplicaPartitionLeaderElectionStrategy,
    preferred_replica_partition_leader_election,
)
from kafkapy.controller.partition_state import PartitionState
from kafkapy.controller.partition_state_machine import (
    ElectionOutcome,
    PartitionStateMachine,
    StateChangeFailedError,
)
from kafkapy.metadata.leader_and_isr import NO_LEADER
from kafkapy.utils.log_context import LogContext
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_data import MalformedZNodeError


class LeaderElectionManager:
    """Elects preferred leaders, or any that lives when asked for an unclean election.

    Belongs to the event thread.

    Ports: kafka.controller.KafkaController (onReplicaElection, processReplicaLeaderElection,
    checkAndTriggerAutoLeaderRebalance)
    """

    def __init__(
        self,
        controller_id: int,
        *,
        imbalance_percentage: int,
        context: ControllerContext,
        zk_client: KafkaZkClient,
        partition_state_machine: PartitionStateMachine,
        put_event: Callable[[ControllerEvent], object],
    ) -> None:
        self._imbalance_percentage = imbalance_percentage  # constant after construction
        self._context = context
        self._zk_client = zk_client
        self._partition_state_machine = partition_state_machine
        self._handler = preferred_replica_election_handler(put_event)
        self._log = LogContext(f"[Controller id={controller_id}] ").logger(__name__)

    def unregister(self) -> None:
        self._zk_client.unregister_znode_change_handler(self._handler.path)

    def process_zk_election(self) -> None:
        """Do what /admin/preferred_replica_election asks for, if it is there, and remove it."""
        while self._zk_client.register_znode_change_handler_and_check_existence(self._handler):
            try:
                partitions = self._zk_client.get_preferred_replica_election()
                self._log.info("Preferred leader election asked for in the store: %s", partitions)
                self.elect(partitions, ElectionType.PREFERRED, ElectionTrigger.ZK)
            except MalformedZNodeError as error:
                self._log.warning("Ignoring a preferred leader election: %s", error)
            finally:
                self._zk_client.delete_preferred_replica_election(self._context.epoch_zk_version)

    def elect(
        self,
        partitions: Collection[TopicPartition],
        election_type: ElectionType,
        trigger: ElectionTrigger,
    ) -> ElectionResults:
        """How it ended for each partition."""
        known = self._context.all_partitions
        results: ElectionResults = {}
        electable = []
        for partition in sorted(set(partitions)):
            if partition not in known:
                results[partition] = ApiResult(
                    Errors.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
                )
            elif self._context.is_topic_queued_up_for_deletion(partition.topic):
                results[partition] = ApiResult(
                    Errors.INVALID_TOPIC_EXCEPTION, "The topic is being deleted"
                )
            elif self._is_election_needed(partition, election_type):
                electable.append(partition)
            else:
                error = Errors.ELECTION_NOT_NEEDED
                results[partition] = ApiResult(error, error.message)
        outcomes = self._run(electable, election_type, trigger)
        for partition in electable:
            outcome = outcomes.get(partition) or self._first_leader(partition)
            results[partition] = _result(election_type, outcome)
        return results

    def rebalance(self) -> None:
        """Move leadership back to the preferred replicas of brokers that lead too little."""
        preferred: dict[int, list[TopicPartition]] = {}
        for partition in self._context.all_partitions:
            replicas = self._context.partition_replica_assignment(partition)
            if replicas and not self._context.is_topic_queued_up_for_deletion(partition.topic):
                preferred.setdefault(replicas[0], []).append(partition)
        limit = self._imbalance_percentage / 100
        for broker_id, partitions in preferred.items():
            led_by_others = [p for p in partitions if self._leader(p) not in (None, broker_id)]
            ratio = len(led_by_others) / len(partitions)
            self._log.debug("Leader imbalance ratio for broker %d is %.3f", broker_id, ratio)
            if ratio > limit:
                candidates = [p for p in led_by_others if self._can_move_back(p)]
                self._run(candidates, ElectionType.PREFERRED, ElectionTrigger.AUTO)

    def _run(
        self,
        partitions: Collection[TopicPartition],
        election_type: ElectionType,
        trigger: ElectionTrigger,
    ) -> dict[TopicPartition, ElectionOutcome]:
        strategy: PartitionLeaderElectionStrategy
        if election_type is ElectionType.PREFERRED:
            strategy = PreferredReplicaPartitionLeaderElectionStrategy()
        else:
            # Only a person may say that losing records is fine.
            strategy = OfflinePartitionLeaderElectionStrategy(
                allow_unclean=trigger is ElectionTrigger.ADMIN_CLIENT
            )
        self._log.info(
            "Starting %s leader election for %d partitions, asked for by %s",
            election_type.name.lower(),
            len(partitions),
            trigger.value,
        )
        return self._partition_state_machine.handle_state_changes(
            partitions, PartitionState.ONLINE, strategy
        )

    def _is_election_needed(self, partition: TopicPartition, election_type: ElectionType) -> bool:
        leader = self._leader(partition)
        if election_type is ElectionType.PREFERRED:
            return leader != self._context.partition_replica_assignment(partition)[0]
        return leader in (None, NO_LEADER) or leader not in self._context.live_broker_ids

    def _first_leader(self, partition: TopicPartition) -> ElectionOutcome:
        """Of a partition that was new, so that it was not elected for."""
        info = self._context.partition_leadership_info(partition)
        if info is None:
            return StateChangeFailedError(f"No replica of {partition} is alive")
        return info.leader_and_isr

    def _can_move_back(self, partition: TopicPartition) -> bool:
        if self._context.partitions_being_reassigned:
            return False
        info = self._context.partition_leadership_info(partition)
        assignment = self._context.partition_replica_assignment(partition)
        live = [r for r in assignment if self._context.is_replica_online(r, partition)]
        return (
            info is not None
            and preferred_replica_partition_leader_election(
                assignment, info.leader_and_isr.isr, live
            )
            is not None
        )

    def _leader(self, partition: TopicPartition) -> int | None:
        info = self._context.partition_leadership_info(partition)
        return info.leader_and_isr.leader if info is not None else None


def _result(election_type: ElectionType, outcome: ElectionOutcome) -> ApiResult | int:
    if isinstance(outcome, StateChangeFailedError):
        error = (
            Errors.PREFERRED_LEADER_NOT_AVAILABLE
            if election_type is ElectionType.PREFERRED
            else Errors.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
        return ApiResult(error, str(outcome))
    if isinstance(outcome, Exception):
        return ApiResult.of(outcome)
    return outcome.leader
