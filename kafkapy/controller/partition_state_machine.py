"""Moves partitions between their states, electing leaders on the way."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kafkapy.common.errors import ControllerMovedError, KafkaError, KafkaStorageError
from kafkapy.common.metrics.stats import MeterInstrument
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_broker_request_batch import (
    ControllerBrokerRequestBatch,
    IllegalBatchError,
)
from kafkapy.controller.controller_context import ControllerContext
from kafkapy.controller.election import (
    ControlledShutdownPartitionLeaderElectionStrategy,
    ElectionResult,
    OfflinePartitionLeaderElectionStrategy,
    PartitionLeaderElectionStrategy,
    PreferredReplicaPartitionLeaderElectionStrategy,
    ReassignPartitionLeaderElectionStrategy,
    leader_for_controlled_shutdown,
    leader_for_offline,
    leader_for_preferred_replica,
    leader_for_reassign,
)
from kafkapy.controller.partition_state import PartitionState
from kafkapy.controller.state_change_logger import StateChangeLogger
from kafkapy.metadata.leader_and_isr import (
    LeaderAndIsr,
    LeaderIsrAndControllerEpoch,
)
from kafkapy.utils.log_context import LogContext
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import StoreCode
from kafkapy.zk.zk_data import MalformedZNodeError, TopicPartitionStateZNode

UNCLEAN_LEADER_ELECTION_ENABLE = "unclean.leader.election.enable"

# The elected state, or why there is none.
ElectionOutcome = LeaderAndIsr | Exception


class StateChangeFailedError(KafkaError):
    """A partition or replica could not go to the state asked for.

    Ports: kafka.common.StateChangeFailedException
    """


class PartitionStateMachine:
    """Owns the states of all partitions. Belongs to the event thread.

    NON_EXISTENT → NEW → ONLINE ⇄ OFFLINE → NON_EXISTENT. Going ONLINE writes the partition's
    leader to the store and tells the brokers; an illegal step is logged and changes nothing.

    Ports: kafka.controller.ZkPartitionStateMachine
    """

    def __init__(
        self,
        controller_id: int,
        *,
        context: ControllerContext,
        zk_client: KafkaZkClient,
        request_batch: ControllerBrokerRequestBatch,
        is_unclean_enabled: Callable[[], bool],
        unclean_leader_elections: MeterInstrument,
    ) -> None:
        self._context = context  # constant after construction
        self._zk_client = zk_client
        self._batch = request_batch
        self._is_unclean_enabled = is_unclean_enabled  # for topics that do not say
        self._state_changes = StateChangeLogger(controller_id)
        self._unclean_leader_elections = unclean_leader_elections
        self._log = LogContext(f"[PartitionStateMachine controllerId={controller_id}] ").logger(
            __name__
        )

    def startup(self) -> None:
        """Take the states from what the store says, then elect leaders for those without."""
        for partition in self._context.all_partitions:
            info = self._context.partition_leadership_info(partition)
            if info is None:
                state = PartitionState.NEW
            elif self._context.is_replica_online(info.leader_and_isr.leader, partition):
                state = PartitionState.ONLINE
            else:
                state = PartitionState.OFFLINE
            self._context.put_partition_state(partition, state)
        self.trigger_online_partition_state_change()

    def trigger_online_partition_state_change(self, topic: str | None = None) -> None:
        """Elect leaders for all partitions (of the topic) that have none."""
        self.trigger_online_state_change_for_partitions(
            self._context.partitions_in_state(
                PartitionState.OFFLINE, PartitionState.NEW, topic=topic
            )
        )

    def trigger_online_state_change_for_partitions(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ElectionOutcome]:
        return self.handle_state_changes(
            [p for p in partitions if not self._context.is_topic_queued_up_for_deletion(p.topic)],
            PartitionState.ONLINE,
            OfflinePartitionLeaderElectionStrategy(),
        )

    def handle_state_changes(
        self,
        partitions: Collection[TopicPartition],
        target: PartitionState,
        strategy: PartitionLeaderElectionStrategy | None = None,
    ) -> dict[TopicPartition, ElectionOutcome]:
        """Move the partitions; `strategy` says how leaders are elected for ONLINE.

        Answers the elections held, none for partitions that were NEW or may not make the step.
        Raises only ControllerMovedError and IllegalBatchError; other failures are logged and
        answered.
        """
        if not partitions:
            return {}
        try:
            self._batch.new_batch()
            outcomes = self._do_handle_state_changes(partitions, target, strategy)
            self._batch.send_requests_to_brokers(self._context.epoch)
            return outcomes
        except (ControllerMovedError, IllegalBatchError, KafkaStorageError):
            self._log.exception(
                "The controller cannot go on after moving partitions to %s", target.name
            )
            raise
        except Exception as error:
            self._log.exception("Error while moving some partitions to %s", target.name)
            return dict.fromkeys(partitions, error)

    def _do_handle_state_changes(
        self,
        partitions: Collection[TopicPartition],
        target: PartitionState,
        strategy: PartitionLeaderElectionStrategy | None,
    ) -> dict[TopicPartition, ElectionOutcome]:
        valid = []
        for partition in sorted(partitions):
            self._context.put_partition_state_if_not_exists(partition, PartitionState.NON_EXISTENT)
            if self._context.partition_state(partition) in target.valid_previous_states:
                valid.append(partition)
            else:
                self._log_invalid_state_change(partition, target)
        if target is not PartitionState.ONLINE:
            for partition in valid:
                self._change_state(partition, target)
            return {}
        uninitialized = [p for p in valid if self._context.partition_state(p) is PartitionState.NEW]
        to_elect = [p for p in valid if self._context.partition_state(p) is not PartitionState.NEW]
        for partition in self._initialize_leader_and_isr(uninitialized):
            self._change_state(partition, target)
        if not to_elect:
            return {}
        if strategy is None:
            raise ValueError("moving partitions to ONLINE needs an election strategy")
        outcomes = self._elect_leaders(to_elect, strategy)
        for partition, outcome in outcomes.items():
            if isinstance(outcome, LeaderAndIsr):
                self._change_state(partition, target)
        return outcomes

    def _initialize_leader_and_isr(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Write the first state of new partitions: all live replicas in sync, the first leads."""
        states: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        for partition in partitions:
            replicas = self._context.partition_replica_assignment(partition)
            live = [r for r in replicas if self._context.is_replica_online(r, partition)]
            if live:
                leader_and_isr = LeaderAndIsr.initial(live[0], live)
                states[partition] = LeaderIsrAndControllerEpoch(leader_and_isr, self._context.epoch)
            else:
                self._log_failed_state_change(
                    partition, PartitionState.ONLINE, f"none of the replicas {replicas} is alive"
                )
        if not states:
            return []
        try:
            responses = self._zk_client.create_topic_partition_states_raw(
                states, self._context.epoch_zk_version
            )
        except (ControllerMovedError, KafkaStorageError):
            raise
        except KafkaError as error:
            for partition in states:
                self._log_failed_state_change(partition, PartitionState.ONLINE, error)
            return []
        successful = []
        for (partition, state), response in zip(states.items(), responses, strict=True):
            if not response.ok:
                self._log_failed_state_change(partition, PartitionState.ONLINE, response.exception)
                continue
            self._context.put_partition_leadership_info(partition, state)
            self._batch.add_leader_and_isr_request_for_brokers(
                state.leader_and_isr.isr,
                partition,
                state,
                assignment=self._context.partition_full_replica_assignment(partition),
                is_new=True,
            )
            successful.append(partition)
        return successful

    def _elect_leaders(
        self, partitions: list[TopicPartition], strategy: PartitionLeaderElectionStrategy
    ) -> dict[TopicPartition, ElectionOutcome]:
        outcomes: dict[TopicPartition, ElectionOutcome] = {}
        remaining = partitions
        while remaining:
            # A broker may change the ISR between our read and our write: read again.
            finished, remaining = self._do_elect_leaders(remaining, strategy)
            for partition, outcome in finished.items():
                if isinstance(outcome, Exception):
                    self._log_failed_state_change(partition, PartitionState.ONLINE, outcome)
            outcomes.update(finished)
        return outcomes

    def _do_elect_leaders(
        self, partitions: list[TopicPartition], strategy: PartitionLeaderElectionStrategy
    ) -> tuple[dict[TopicPartition, ElectionOutcome], list[TopicPartition]]:
        """Outcomes, and the partitions whose state changed under our hands."""
        try:
            current, failed = self._read_states(partitions)
            if not current:
                return failed, []
            results = self._run_elections(current, strategy)
        except (ControllerMovedError, KafkaStorageError):
            raise
        except KafkaError as error:
            return dict.fromkeys(partitions, error), []
        elected: dict[TopicPartition, LeaderAndIsr] = {}
        recipients: dict[TopicPartition, tuple[int, ...]] = {}
        for result in results:
            if result.leader_and_isr is None:
                failed[result.topic_partition] = StateChangeFailedError(
                    f"Failed to elect leader for partition {result.topic_partition} under strategy "
                    f"{strategy}"
                )
                continue
            elected[result.topic_partition] = result.leader_and_isr
            recipients[result.topic_partition] = result.live_replicas
            if result.unclean:
                self._unclean_leader_elections.mark()
        if not elected:
            return failed, []
        update = self._zk_client.update_leader_and_isr(
            elected, self._context.epoch, self._context.epoch_zk_version
        )
        for partition, outcome in update.finished_partitions.items():
            if isinstance(outcome, LeaderAndIsr):
                state = LeaderIsrAndControllerEpoch(outcome, self._context.epoch)
                self._context.put_partition_leadership_info(partition, state)
                self._batch.add_leader_and_isr_request_for_brokers(
                    recipients[partition],
                    partition,
                    state,
                    assignment=self._context.partition_full_replica_assignment(partition),
                    is_new=False,
                )
        return {**update.finished_partitions, **failed}, update.partitions_to_retry

    def _read_states(
        self, partitions: list[TopicPartition]
    ) -> tuple[dict[TopicPartition, LeaderAndIsr], dict[TopicPartition, ElectionOutcome]]:
        current: dict[TopicPartition, LeaderAndIsr] = {}
        failed: dict[TopicPartition, ElectionOutcome] = {}
        responses = self._zk_client.get_topic_partition_states_raw(partitions)
        for partition, response in zip(partitions, responses, strict=True):
            if response.ok:
                try:
                    info = TopicPartitionStateZNode.decode(
                        partition, response.data, response.stat_or_raise()
                    )
                except MalformedZNodeError as error:
                    failed[partition] = error
                    continue
                if info.controller_epoch > self._context.epoch:
                    failed[partition] = StateChangeFailedError(
                        f"The state of {partition} was written by a controller of epoch "
                        f"{info.controller_epoch}, after ours ({self._context.epoch})"
                    )
                else:
                    current[partition] = info.leader_and_isr
            elif response.result_code is StoreCode.NO_NODE:
                failed[partition] = StateChangeFailedError(
                    f"There is no state in the store for partition {partition} in state "
                    f"{self._context.partition_state(partition).name}"
                )
            else:
                failed[partition] = response.exception
        return current, failed

    def _run_elections(
        self,
        current: dict[TopicPartition, LeaderAndIsr],
        strategy: PartitionLeaderElectionStrategy,
    ) -> list[ElectionResult]:
        context = self._context
        match strategy:
            case OfflinePartitionLeaderElectionStrategy(allow_unclean):
                return self._run_offline_elections(current, allow_unclean=allow_unclean)
            case ReassignPartitionLeaderElectionStrategy():
                return [leader_for_reassign(context, p, state) for p, state in current.items()]
            case PreferredReplicaPartitionLeaderElectionStrategy():
                return [
                    leader_for_preferred_replica(context, p, state) for p, state in current.items()
                ]
            case ControlledShutdownPartitionLeaderElectionStrategy():
                return [
                    leader_for_controlled_shutdown(context, p, state)
                    for p, state in current.items()
                ]

    def _run_offline_elections(
        self, current: dict[TopicPartition, LeaderAndIsr], *, allow_unclean: bool
    ) -> list[ElectionResult]:
        # Settings are read only where they decide: when nobody in sync is left.
        stranded = {
            partition
            for partition, state in current.items()
            if not any(self._context.is_replica_online(r, partition) for r in state.isr)
        }
        unclean: dict[str, bool] = {}
        failed: set[str] = set()
        if stranded and not allow_unclean:
            configs, errors = self._zk_client.get_topic_configs({p.topic for p in stranded})
            failed = set(errors)
            default = "true" if self._is_unclean_enabled() else "false"
            for topic, topic_config in configs.items():
                text = topic_config.get(UNCLEAN_LEADER_ELECTION_ENABLE, default)
                unclean[topic] = text.strip().lower() == "true"
        results = []
        for partition, state in current.items():
            unreadable = partition in stranded and partition.topic in failed
            if unreadable:
                self._log_failed_state_change(
                    partition, PartitionState.ONLINE, "the topic's settings could not be read"
                )
            results.append(
                leader_for_offline(
                    self._context,
                    partition,
                    None if unreadable else state,
                    unclean_leader_election_enabled=partition in stranded
                    and (allow_unclean or unclean.get(partition.topic, False)),
                )
            )
        return results

    def _change_state(self, partition: TopicPartition, target: PartitionState) -> None:
        self._state_changes.with_controller_epoch(self._context.epoch).debug(
            "Changed partition %s from %s to %s",
            partition,
            self._context.partition_state(partition).name,
            target.name,
        )
        self._context.put_partition_state(partition, target)

    def _log_invalid_state_change(self, partition: TopicPartition, target: PartitionState) -> None:
        state = self._context.partition_state(partition)
        self._log_failed_state_change(
            partition, target, f"that is legal from {_names(target)} only, not from {state.name}"
        )

    def _log_failed_state_change(
        self, partition: TopicPartition, target: PartitionState, reason: object
    ) -> None:
        self._state_changes.with_controller_epoch(self._context.epoch).error(
            "Partition %s did not change from %s to %s: %s",
            partition,
            self._context.partition_state(partition).name,
            target.name,
            reason,
        )


def _names(target: PartitionState) -> str:
    return ", ".join(state.name for state in sorted(target.valid_previous_states))
