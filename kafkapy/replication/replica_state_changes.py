"""Carrying out what the controller and lost disks decide about replicas."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from kafkapy.common.errors import ControllerMovedError, Errors, KafkaError, KafkaStorageError
from kafkapy.common.protocol.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.metadata.leader_and_isr import EPOCH_DURING_DELETE
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.replication.delayed_operations import DelayedOperations
from kafkapy.replication.fetcher_manager import FetcherManager, InitialFetchState
from kafkapy.replication.high_watermark_checkpoints import HighWatermarkCheckpoints
from kafkapy.replication.hosted_partitions import HostedPartitions
from kafkapy.replication.lazy_offset_checkpoints import LazyOffsetCheckpoints
from kafkapy.replication.partition import LeaderAndIsrPartitionState, Partition
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.unified_log import UnifiedLog

logger = logging.getLogger(__name__)

# StopReplica before v3 carries no leader epoch: then it is not checked.
_NO_EPOCH = -1

OnLeadershipChange = Callable[[list[Partition], list[Partition]], None]


class _PartitionChange(NamedTuple):
    partition: Partition
    state: LeaderAndIsrPartitionState
    topic_id: UUID | None


class ReplicaStateChanges:
    """Makes replicas leaders or followers, stops them, takes them offline. Thread-safe.

    One change at a time, under `lock`, the first in the lock order: state change, partition, log.
    A request from a controller older than the newest one heard of is refused. What waits for a
    partition that changed is completed after the lock is released.

    Ports: kafka.server.ReplicaManager (becomeLeaderOrFollower, stopReplicas, handleLogDirFailure)
    """

    def __init__(
        self,
        *,
        local_broker_id: int,
        inter_broker_listener_name: str,
        create_partition: Callable[[TopicPartition], Partition],
        partitions: HostedPartitions,
        log_manager: LogManager,
        metadata_cache: MetadataCache,
        delayed_operations: DelayedOperations,
        high_watermarks: HighWatermarkCheckpoints,
        broker_topic_stats: BrokerTopicStats,
        fetcher_manager: FetcherManager | None,
        on_first_leader_and_isr: Callable[[], None],
    ) -> None:
        # constant after construction
        self._local_broker_id = local_broker_id
        self._listener_name = inter_broker_listener_name
        self._create_partition = create_partition
        self._partitions = partitions
        self._log_manager = log_manager
        self._metadata_cache = metadata_cache
        self._delayed_operations = delayed_operations
        self._high_watermarks = high_watermarks
        self._broker_topic_stats = broker_topic_stats
        self._fetcher_manager = fetcher_manager
        self._on_first_leader_and_isr = on_first_leader_and_isr
        self.lock = threading.RLock()
        # guarded by self.lock
        self.controller_epoch = 0
        self.is_shutting_down = False

    # LeaderAndIsr

    def become_leader_or_follower(
        self,
        correlation_id: int,
        request: LeaderAndIsrRequest,
        version: int,
        on_leadership_change: OnLeadershipChange | None,
    ) -> LeaderAndIsrResponse:
        with self.lock:
            if request.controller_epoch < self.controller_epoch:
                logger.warning(
                    "LeaderAndIsr %d of controller %d refused: epoch %d is older than %d",
                    correlation_id,
                    request.controller_id,
                    request.controller_epoch,
                    self.controller_epoch,
                )
                return LeaderAndIsrResponse(error_code=Errors.STALE_CONTROLLER_EPOCH.code)
            self.controller_epoch = request.controller_epoch
            errors: dict[TopicPartition, Errors] = {}
            topic_ids: dict[str, UUID] = {}
            to_lead: list[_PartitionChange] = []
            to_follow: list[_PartitionChange] = []
            for topic, topic_id, state in _partition_states(request):
                topic_ids[topic] = topic_id
                change = self._prepare_change_locked(topic, topic_id, state, errors)
                if change is not None:
                    leads = state.leader == self._local_broker_id
                    (to_lead if leads else to_follow).append(change)
            checkpoints = self._high_watermarks.lazily()
            leaders = self._make_leaders_locked(to_lead, errors, checkpoints)
            followers = self._make_followers_locked(to_follow, errors, checkpoints)
            # Only now are all partitions known whose high watermarks the checkpoint must keep.
            self._on_first_leader_and_isr()
            if self._fetcher_manager is not None:
                self._fetcher_manager.shutdown_idle_fetcher_threads()
            if on_leadership_change is not None:
                on_leadership_change(leaders, followers)
        for partition, _, _ in to_lead:
            self._delayed_operations.check_and_complete_all(partition.topic_partition)
        for partition in followers:
            self._delayed_operations.check_and_complete_all(partition.topic_partition)
        return _leader_and_isr_response(errors, topic_ids, version)

    def _prepare_change_locked(
        self,
        topic: str,
        topic_id: UUID,
        state: LeaderAndIsrPartitionState,
        errors: dict[TopicPartition, Errors],
    ) -> _PartitionChange | None:
        """The partition if the state is newer than what it has; otherwise `errors` says why."""
        topic_partition = TopicPartition(topic, state.partition_index)
        if self._partitions.is_offline(topic_partition):
            logger.warning("%s is in an offline log directory and stays as it is", topic_partition)
            errors[topic_partition] = Errors.KAFKA_STORAGE_ERROR
            return None
        partition = self._partitions.get_or_create(topic_partition, self._create_partition)
        wanted_id = topic_id if topic_id != ZERO_UUID else None
        log_topic_id = partition.topic_id
        if wanted_id is not None and log_topic_id not in (None, wanted_id):
            logger.error(
                "Topic id %s of %s is not that of its log, %s",
                wanted_id,
                topic_partition,
                log_topic_id,
            )
            errors[topic_partition] = Errors.INCONSISTENT_TOPIC_ID
        elif state.leader_epoch > partition.leader_epoch:
            if self._local_broker_id in state.replicas:
                return _PartitionChange(partition, state, wanted_id)
            logger.warning("This broker is not among the replicas of %s", topic_partition)
            errors[topic_partition] = Errors.UNKNOWN_TOPIC_OR_PARTITION
        elif (
            state.leader_epoch == partition.leader_epoch
            and wanted_id is not None
            and log_topic_id is None
        ):
            # A cluster that begins to use topic ids sends them without a new epoch.
            partition.local_log_or_raise.assign_topic_id(wanted_id)
            errors[topic_partition] = Errors.NONE
        else:
            logger.info(
                "Leader epoch %d of %s is not newer than %d",
                state.leader_epoch,
                topic_partition,
                partition.leader_epoch,
            )
            errors[topic_partition] = Errors.STALE_CONTROLLER_EPOCH
        return None

    def _make_leaders_locked(
        self,
        changes: list[_PartitionChange],
        errors: dict[TopicPartition, Errors],
        checkpoints: LazyOffsetCheckpoints,
    ) -> list[Partition]:
        leaders = []
        self._stop_fetching(change.partition.topic_partition for change in changes)
        for partition, state, topic_id in changes:
            topic_partition = partition.topic_partition
            errors[topic_partition] = Errors.NONE
            try:
                if partition.make_leader(state, checkpoints, topic_id):
                    leaders.append(partition)
            except KafkaStorageError:
                logger.exception("%s cannot be led: its log is not there", topic_partition)
                self.mark_partition_offline(topic_partition)
                errors[topic_partition] = Errors.KAFKA_STORAGE_ERROR
        return leaders

    def _make_followers_locked(
        self,
        changes: list[_PartitionChange],
        errors: dict[TopicPartition, Errors],
        checkpoints: LazyOffsetCheckpoints,
    ) -> list[Partition]:
        followers: list[tuple[Partition, UUID | None]] = []
        for partition, state, topic_id in changes:
            topic_partition = partition.topic_partition
            errors[topic_partition] = Errors.NONE
            try:
                if not self._metadata_cache.has_alive_broker(state.leader):
                    logger.error("Leader %d of %s is not alive", state.leader, topic_partition)
                    # The log all the same, so that the checkpoint keeps its high watermark.
                    partition.create_log_if_not_exists(
                        checkpoints, is_new=state.is_new, topic_id=topic_id
                    )
                elif partition.make_follower(state, checkpoints, topic_id):
                    followers.append((partition, topic_id))
            except KafkaStorageError:
                logger.exception("%s cannot follow: its log is not there", topic_partition)
                self.mark_partition_offline(topic_partition)
                errors[topic_partition] = Errors.KAFKA_STORAGE_ERROR
        # Fetchers stop before the fetch positions are taken.
        self._stop_fetching(partition.topic_partition for partition, _ in followers)
        if self._fetcher_manager is not None and not self.is_shutting_down:
            self._fetcher_manager.add_fetcher_for_partitions(
                self._initial_fetch_states_locked(followers)
            )
        return [partition for partition, _ in followers]

    def _initial_fetch_states_locked(
        self, followers: list[tuple[Partition, UUID | None]]
    ) -> dict[TopicPartition, InitialFetchState]:
        states = {}
        for partition, topic_id in followers:
            leader_id = partition.leader_replica_id
            leader = (
                self._metadata_cache.get_alive_broker_node(leader_id, self._listener_name)
                if leader_id is not None
                else None
            )
            if leader is not None:
                states[partition.topic_partition] = InitialFetchState(
                    topic_id,
                    leader,
                    partition.leader_epoch,
                    _initial_fetch_offset(partition.local_log_or_raise),
                )
        return states

    def _stop_fetching(self, topic_partitions: Iterable[TopicPartition]) -> None:
        if self._fetcher_manager is not None:
            self._fetcher_manager.remove_fetcher_for_partitions(set(topic_partitions))

    # StopReplica

    def stop_replicas(
        self, correlation_id: int, request: StopReplicaRequest, version: int
    ) -> StopReplicaResponse:
        with self.lock:
            if request.controller_epoch < self.controller_epoch:
                logger.warning(
                    "StopReplica %d of controller %d refused: epoch %d is older than %d",
                    correlation_id,
                    request.controller_id,
                    request.controller_epoch,
                    self.controller_epoch,
                )
                return StopReplicaResponse(error_code=Errors.STALE_CONTROLLER_EPOCH.code)
            self.controller_epoch = request.controller_epoch
            errors: dict[TopicPartition, Errors] = {}
            to_stop: dict[TopicPartition, bool] = {}
            for topic_partition, leader_epoch, delete in _stopped_partitions(request, version):
                partition = self._partitions.get(topic_partition)
                if partition is None and self._partitions.is_offline(topic_partition):
                    errors[topic_partition] = Errors.KAFKA_STORAGE_ERROR
                elif (
                    partition is not None
                    and leader_epoch not in (EPOCH_DURING_DELETE, _NO_EPOCH)
                    and leader_epoch < partition.leader_epoch
                ):
                    errors[topic_partition] = Errors.FENCED_LEADER_EPOCH
                else:
                    errors[topic_partition] = Errors.NONE
                    to_stop[topic_partition] = delete
            errors.update(self._stop_partitions_locked(to_stop))
            if self._fetcher_manager is not None:
                self._fetcher_manager.shutdown_idle_fetcher_threads()
        for topic_partition in to_stop:
            self._delayed_operations.check_and_complete_all(topic_partition)
        return StopReplicaResponse(
            partition_errors=[
                StopReplicaResponse.StopReplicaPartitionError(
                    topic_name=topic, partition_index=partition_index, error_code=error.code
                )
                for (topic, partition_index), error in errors.items()
            ]
        )

    def _stop_partitions_locked(
        self, to_stop: Mapping[TopicPartition, bool]
    ) -> dict[TopicPartition, Errors]:
        """Stop fetching, then forget partitions to be deleted, then delete their logs."""
        self._stop_fetching(to_stop)
        errors = {}
        for topic_partition, delete in to_stop.items():
            if delete:
                partition = self._partitions.remove(topic_partition)
                if partition is not None:
                    self._maybe_remove_topic_metrics(topic_partition.topic)
                    partition.delete()
        for topic_partition, delete in to_stop.items():
            if delete:
                # A log without a partition too: its topic was deleted while the broker was down.
                try:
                    self._log_manager.async_delete(topic_partition)
                except KafkaError as error:
                    logger.exception("The log of %s could not be deleted", topic_partition)
                    errors[topic_partition] = Errors.for_exception(error)
        return errors

    # UpdateMetadata

    def maybe_update_metadata_cache(
        self, correlation_id: int, request: UpdateMetadataRequest
    ) -> list[TopicPartition]:
        """The partitions that are gone; ControllerMovedError for an old controller."""
        with self.lock:
            if request.controller_epoch < self.controller_epoch:
                raise ControllerMovedError(
                    f"epoch {request.controller_epoch} of controller {request.controller_id} is "
                    f"older than {self.controller_epoch}"
                )
            deleted = self._metadata_cache.update_metadata(correlation_id, request)
            self.controller_epoch = request.controller_epoch
            return list(deleted)

    # Lost directories

    def mark_partition_offline(self, topic_partition: TopicPartition) -> None:
        with self.lock:
            partition = self._partitions.mark_offline(topic_partition)
            if partition is not None:
                partition.mark_offline()

    def handle_log_dir_failure(self, log_dir: str) -> bool:
        """Stop serving what is in the directory; False when that has been done already."""
        if not self._log_manager.is_log_dir_online(log_dir):
            return False
        logger.warning("Stopping to serve the replicas in %s", log_dir)
        with self.lock:
            lost = [
                partition.topic_partition
                for partition in self._partitions.online()
                if partition.log is not None and partition.log.parent_dir == log_dir
            ]
            self._stop_fetching(lost)
            for topic_partition in lost:
                self.mark_partition_offline(topic_partition)
            for topic in {topic_partition.topic for topic_partition in lost}:
                self._maybe_remove_topic_metrics(topic)
        self._log_manager.handle_log_dir_failure(log_dir)
        for topic_partition in lost:
            self._delayed_operations.check_and_complete_all(topic_partition)
        logger.warning("%d replicas in %s are offline", len(lost), log_dir)
        return True

    def _maybe_remove_topic_metrics(self, topic: str) -> None:
        if not self._partitions.has_topic(topic):
            self._broker_topic_stats.remove_metrics(topic)


def _initial_fetch_offset(log: UnifiedLog) -> int:
    # The leader tells a follower that knows its last epoch where to truncate; one that does not
    # can only trust what was committed.
    return log.log_end_offset if log.latest_epoch is not None else log.high_watermark


def _partition_states(
    request: LeaderAndIsrRequest,
) -> Iterable[tuple[str, UUID, LeaderAndIsrPartitionState]]:
    for state in request.ungrouped_partition_states:
        yield state.topic_name, ZERO_UUID, state
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, topic.topic_id, state


def _leader_and_isr_response(
    errors: Mapping[TopicPartition, Errors], topic_ids: Mapping[str, UUID], version: int
) -> LeaderAndIsrResponse:
    response = LeaderAndIsrResponse()
    by_topic: dict[UUID, LeaderAndIsrResponse.LeaderAndIsrTopicError] = {}
    for (topic, partition_index), error in errors.items():
        partition_error = LeaderAndIsrResponse.LeaderAndIsrPartitionError(
            topic_name=topic, partition_index=partition_index, error_code=error.code
        )
        if version < 5:
            response.partition_errors.append(partition_error)
            continue
        topic_id = topic_ids[topic]
        topic_error = by_topic.get(topic_id)
        if topic_error is None:
            topic_error = by_topic[topic_id] = LeaderAndIsrResponse.LeaderAndIsrTopicError(
                topic_id=topic_id
            )
            response.topics.append(topic_error)
        topic_error.partition_errors.append(partition_error)
    return response


def _stopped_partitions(
    request: StopReplicaRequest, version: int
) -> Iterable[tuple[TopicPartition, int, bool]]:
    """Partition, leader epoch and whether to delete it, in each of the request's three forms."""
    if version >= 3:
        for topic in request.topic_states:
            for state in topic.partition_states:
                yield (
                    TopicPartition(topic.topic_name, state.partition_index),
                    state.leader_epoch,
                    state.delete_partition,
                )
        return
    delete = request.delete_partitions
    for ungrouped in request.ungrouped_partitions:
        topic_partition = TopicPartition(ungrouped.topic_name, ungrouped.partition_index)
        yield topic_partition, _NO_EPOCH, delete
    for grouped in request.topics:
        for partition_index in grouped.partition_indexes:
            yield TopicPartition(grouped.name, partition_index), _NO_EPOCH, delete
