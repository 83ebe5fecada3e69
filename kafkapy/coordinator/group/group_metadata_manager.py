"""The groups of this broker, in memory and in __consumer_offsets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.errors import Errors, KafkaError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord
from kafkapy.common.record.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TopicPartition
from kafkapy.coordinator.group.group_coordinator_config import GroupCoordinatorConfig
from kafkapy.coordinator.group.group_metadata import GroupMetadata
from kafkapy.coordinator.group.group_metadata_loader import GroupMetadataLoader
from kafkapy.coordinator.group.group_metadata_manager_metrics import GroupMetadataManagerMetrics
from kafkapy.coordinator.group.group_metadata_records import (
    group_metadata_key,
    group_metadata_value,
    offset_commit_key,
    offset_commit_value,
)
from kafkapy.coordinator.group.group_state import GroupState
from kafkapy.coordinator.group.offset_and_metadata import (
    CommitRecordMetadataAndOffset,
    OffsetAndMetadata,
)
from kafkapy.coordinator.group.offsets_partitions import OffsetsPartitions
from kafkapy.coordinator.group.producer_groups import ProducerGroups
from kafkapy.replication.partition import Partition
from kafkapy.replication.partition_response import PartitionResponse
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.verification_state_entry import VerificationGuard
from kafkapy.utils.java_hash import java_partition_for
from kafkapy.utils.scheduler import Scheduler
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

CommitCallback = Callable[[dict[TopicPartition, Errors]], None]
Commits = Mapping[TopicPartition, OffsetAndMetadata]
# With what went wrong, if anything did.
TxnCompletionCallback = Callable[[Exception | None], None]

_NOT_AVAILABLE = dict.fromkeys(
    (
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ),
    Errors.COORDINATOR_NOT_AVAILABLE,
)
_MOVED = dict.fromkeys(
    (Errors.NOT_LEADER_OR_FOLLOWER, Errors.KAFKA_STORAGE_ERROR), Errors.NOT_COORDINATOR
)
_TOO_LARGE = (Errors.MESSAGE_TOO_LARGE, Errors.RECORD_LIST_TOO_LARGE, Errors.INVALID_FETCH_SIZE)
# What a failed append means to a member; what is not here is passed on.
_STORE_GROUP_ERRORS = {
    **_NOT_AVAILABLE,
    **_MOVED,
    **dict.fromkeys(_TOO_LARGE, Errors.UNKNOWN_SERVER_ERROR),
    Errors.REQUEST_TIMED_OUT: Errors.REBALANCE_IN_PROGRESS,
}
_STORE_OFFSETS_ERRORS = {
    **_NOT_AVAILABLE,
    **_MOVED,
    **dict.fromkeys(_TOO_LARGE, Errors.INVALID_COMMIT_OFFSET_SIZE),
    Errors.NETWORK_EXCEPTION: Errors.COORDINATOR_LOAD_IN_PROGRESS,
}


def offset_commit_error(error: Errors) -> Errors:
    """What a failed append, or a failed verification before it, means to who commits offsets."""
    return _STORE_OFFSETS_ERRORS.get(error, error)


class GroupMetadataManager:
    """Keeps groups in memory and stores every change; loads and drops them with leadership.

    Thread-safe. Lock order: a group's lock, then the locks in here. Loading, unloading and expiry
    run on a thread of their own, in the order in which they were asked for.

    Ports: kafka.coordinator.group.GroupMetadataManager
    """

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        *,
        replica_manager: ReplicaManager,
        scheduler: Scheduler,
        time: Time,
        metrics: MetricsRegistry,
    ) -> None:
        # constant after construction
        self._config = config
        self._replica_manager = replica_manager
        self._scheduler = scheduler
        self._time = time
        self._compression = Compression(CompressionType(config.offsets_topic_compression_codec))
        self._partitions = OffsetsPartitions()
        self._producer_groups = ProducerGroups()
        self._shutting_down = threading.Event()
        self._loader = GroupMetadataLoader(
            time,
            buffer_size=config.offsets_load_buffer_size,
            is_cancelled=self._shutting_down.is_set,
        )
        self._num_partitions = config.offsets_topic_num_partitions  # set again by startup
        self._cache_lock = threading.Lock()
        self._groups: dict[str, GroupMetadata] = {}  # guarded by self._cache_lock
        self.metrics = GroupMetadataManagerMetrics(metrics, self.current_groups)

    def startup(self, num_partitions: int, *, enable_expiration: bool = True) -> None:
        """`num_partitions` is that of __consumer_offsets."""
        self._num_partitions = num_partitions
        self._scheduler.startup()
        if enable_expiration:
            interval_ms = self._config.offsets_retention_check_interval_ms
            self._scheduler.schedule(
                "delete-expired-group-metadata",
                self.cleanup_expired_offsets,
                delay_ms=interval_ms,
                period_ms=interval_ms,
            )

    def shutdown(self) -> None:
        self._shutting_down.set()
        self._scheduler.shutdown()
        self.metrics.remove()

    # The cache

    def partition_for(self, group_id: str) -> int:
        return java_partition_for(group_id, self._num_partitions)

    def is_group_local(self, group_id: str) -> bool:
        return self._partitions.is_owned(self.partition_for(group_id))

    def is_group_loading(self, group_id: str) -> bool:
        return self._partitions.is_loading(self.partition_for(group_id))

    @property
    def is_loading(self) -> bool:
        return self._partitions.is_loading_any

    def group_not_exists(self, group_id: str) -> bool:
        """Whether the group would be here if it existed."""
        with self._partitions.lock:
            if not self.is_group_local(group_id):
                return False
        group = self.get_group(group_id)
        if group is None:
            return True
        with group.lock:
            return group.is_in(GroupState.DEAD)

    def get_group(self, group_id: str) -> GroupMetadata | None:
        return self._groups.get(group_id)

    def get_or_create_group(self, group_id: str) -> GroupMetadata:
        return self._groups.get(group_id) or self.add_group(GroupMetadata(group_id, self._time))

    def add_group(self, group: GroupMetadata) -> GroupMetadata:
        """The group of that id: this one, unless another was there before."""
        with self._cache_lock:
            return self._groups.setdefault(group.group_id, group)

    def current_groups(self) -> list[GroupMetadata]:
        with self._cache_lock:
            return list(self._groups.values())

    def _remove_from_cache(self, group: GroupMetadata) -> bool:
        with self._cache_lock:
            if self._groups.get(group.group_id) is not group:
                return False
            del self._groups[group.group_id]
            return True

    # Storing

    def store_group(
        self,
        group: GroupMetadata,
        assignments: Mapping[str, bytes],
        callback: Callable[[Errors], None],
    ) -> None:
        """Needs the group's lock; the callback may run before this returns."""

        def on_append(response: PartitionResponse) -> None:
            error = _STORE_GROUP_ERRORS.get(response.error, response.error)
            if error is not Errors.NONE:
                logger.warning(
                    "Group %s, generation %d could not be stored: %s",
                    group.group_id,
                    group.generation_id,
                    response.error.name,
                )
            callback(error)

        record = SimpleRecord(
            self._time.milliseconds(),
            group_metadata_key(group.group_id),
            group_metadata_value(group, assignments),
        )
        self._append(
            group, MemoryRecords.with_records(record, compression=self._compression), on_append
        )

    def store_offsets(
        self,
        group: GroupMetadata,
        offsets: Commits,
        callback: CommitCallback,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        verification_guard: VerificationGuard = VerificationGuard.SENTINEL,
    ) -> None:
        """Needs the group's lock. With a producer the commit counts when its transaction does."""
        is_transactional = producer_id != NO_PRODUCER_ID
        accepted = {
            topic_partition: offset
            for topic_partition, offset in offsets.items()
            if self._is_metadata_short_enough(offset.metadata)
        }

        def respond(error: Errors) -> None:
            callback(
                {
                    topic_partition: (
                        error if topic_partition in accepted else Errors.OFFSET_METADATA_TOO_LARGE
                    )
                    for topic_partition in offsets
                }
            )

        def on_append(response: PartitionResponse) -> None:
            with group.lock:
                if response.error is Errors.NONE:
                    self.metrics.offset_commits.mark(len(accepted))
                if not group.is_in(GroupState.DEAD):
                    self._finish_commit(group, accepted, producer_id, response)
            respond(offset_commit_error(response.error))

        if not accepted:
            respond(Errors.NONE)
            return
        now_ms = self._time.milliseconds()
        records = MemoryRecords.with_records(
            *(
                SimpleRecord(
                    now_ms,
                    offset_commit_key(group.group_id, topic_partition),
                    offset_commit_value(offset),
                )
                for topic_partition, offset in accepted.items()
            ),
            compression=self._compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0 if is_transactional else NO_SEQUENCE,
            is_transactional=is_transactional,
        )
        if is_transactional:
            self._producer_groups.add(producer_id, group.group_id)
            group.offsets.prepare_transactional_commit(producer_id, accepted)
        else:
            group.offsets.prepare_commit(accepted)
        if not group.offsets.has_received_consistent_commits:
            logger.warning(
                "Group %s gets offsets both from transactions and from consumers, so that "
                "consumers may see them out of order",
                group.group_id,
            )
        self._append(group, records, on_append, verification_guard=verification_guard)

    def _finish_commit(
        self,
        group: GroupMetadata,
        accepted: Commits,
        producer_id: int,
        response: PartitionResponse,
    ) -> None:
        for topic_partition, offset in accepted.items():
            commit = CommitRecordMetadataAndOffset(response.base_offset, offset)
            match response.error is Errors.NONE, producer_id != NO_PRODUCER_ID:
                case True, True:
                    group.offsets.on_transactional_commit_append(
                        producer_id, topic_partition, commit
                    )
                case True, False:
                    group.offsets.on_commit_append(topic_partition, commit)
                case False, True:
                    group.offsets.fail_pending_transactional_commit(producer_id, topic_partition)
                case False, False:
                    group.offsets.fail_pending_commit(topic_partition, offset)
        if not group.offsets.has_pending_from_producer(producer_id):
            self._producer_groups.remove(producer_id, group.group_id)

    def _append(
        self,
        group: GroupMetadata,
        records: MemoryRecords,
        callback: Callable[[PartitionResponse], None],
        *,
        verification_guard: VerificationGuard = VerificationGuard.SENTINEL,
    ) -> None:
        partition = TopicPartition(CONSUMER_OFFSETS_TOPIC, self.partition_for(group.group_id))
        self._replica_manager.append_records(
            timeout_ms=self._config.offsets_commit_timeout_ms,
            required_acks=self._config.offsets_commit_required_acks,
            internal_topics_allowed=True,
            origin=AppendOrigin.COORDINATOR,
            entries_per_partition={partition: records},
            response_callback=lambda responses: callback(responses[partition]),
            verification_guards={partition: verification_guard},
        )

    def _is_metadata_short_enough(self, metadata: str) -> bool:
        # Of Java's characters, whatever the setting is called: beyond U+FFFF one counts as two.
        beyond = sum(character > "\uffff" for character in metadata)
        return len(metadata) + beyond <= self._config.offset_metadata_max_bytes

    # Reading

    def get_offsets(
        self,
        group_id: str,
        topic_partitions: Iterable[TopicPartition] | None,
        *,
        require_stable: bool,
    ) -> dict[TopicPartition, tuple[Errors, OffsetAndMetadata | None]]:
        """None for a partition without offset; None asks for all partitions that have one."""
        group = self.get_group(group_id)
        if group is None:
            return dict.fromkeys(topic_partitions or (), (Errors.NONE, None))
        with group.lock:
            if group.is_in(GroupState.DEAD):
                return dict.fromkeys(topic_partitions or (), (Errors.NONE, None))
            offsets = group.offsets
            return {
                topic_partition: (
                    (Errors.UNSTABLE_OFFSET_COMMIT, None)
                    if require_stable and offsets.has_pending(topic_partition)
                    else (Errors.NONE, offsets.get(topic_partition))
                )
                for topic_partition in (
                    offsets.partitions() if topic_partitions is None else topic_partitions
                )
            }

    # Leadership

    def schedule_load_groups_and_offsets(
        self,
        partition: int,
        coordinator_epoch: int,
        on_group_loaded: Callable[[GroupMetadata], None],
    ) -> None:
        topic_partition = TopicPartition(CONSUMER_OFFSETS_TOPIC, partition)
        started_ms = self._time.hi_res_clock_ms()

        def load() -> None:
            if not self._partitions.start_loading(partition, coordinator_epoch):
                logger.info(
                    "%s is not loaded for epoch %d: that is too old, or it is loaded already",
                    topic_partition,
                    coordinator_epoch,
                )
                return
            try:
                self._load(topic_partition, on_group_loaded)
            except Exception:
                logger.exception("%s could not be loaded", topic_partition)
            finally:
                self._partitions.finish_loading(partition)
            elapsed_ms = self._time.hi_res_clock_ms() - started_ms
            self.metrics.partition_load_time.update(elapsed_ms)
            logger.info("%s is loaded, after %d ms", topic_partition, elapsed_ms)

        self._scheduler.schedule_once(str(topic_partition), load)

    def _load(
        self, topic_partition: TopicPartition, on_group_loaded: Callable[[GroupMetadata], None]
    ) -> None:
        log = self._replica_manager.get_log(topic_partition)
        if log is None:
            logger.warning("%s has no log to be loaded from", topic_partition)
            return
        loaded = self._loader.load(log)
        for group in loaded.groups:
            if self.add_group(group) is group:
                on_group_loaded(group)
        for producer_id, group_ids in loaded.groups_of_producer.items():
            for group_id in group_ids:
                self._producer_groups.add(producer_id, group_id)

    def remove_groups_for_partition(
        self,
        partition: int,
        coordinator_epoch: int | None,
        on_group_unloaded: Callable[[GroupMetadata], None],
    ) -> None:
        def unload() -> None:
            if not self._partitions.give_up(partition, coordinator_epoch):
                logger.info("Epoch %s of partition %d is too old", coordinator_epoch, partition)
                return
            for group in self.current_groups():
                if self.partition_for(group.group_id) == partition:
                    on_group_unloaded(group)
                    self._remove_from_cache(group)
                    self._producer_groups.remove_group(group.group_id)
            logger.info("%s-%d is coordinated elsewhere", CONSUMER_OFFSETS_TOPIC, partition)

        self._scheduler.schedule_once(f"unload-{CONSUMER_OFFSETS_TOPIC}-{partition}", unload)

    # Removing

    def cleanup_expired_offsets(self) -> None:
        now_ms = self._time.milliseconds()
        retention_ms = self._config.offsets_retention_ms
        removed = self.cleanup_group_metadata(
            self.current_groups(),
            lambda group: group.remove_expired_offsets(now_ms, retention_ms),
        )
        self.metrics.offset_expirations.mark(removed)
        self._replica_manager.try_complete_actions()

    def cleanup_group_metadata(
        self,
        groups: Iterable[GroupMetadata],
        remove_offsets: Callable[[GroupMetadata], Mapping[TopicPartition, OffsetAndMetadata]],
    ) -> int:
        """Remove offsets, and groups that are left with none; how many offsets that were."""
        return sum(self._cleanup_group(group, remove_offsets) for group in groups)

    def _cleanup_group(
        self,
        group: GroupMetadata,
        remove_offsets: Callable[[GroupMetadata], Mapping[TopicPartition, OffsetAndMetadata]],
    ) -> int:
        topic_partition = TopicPartition(CONSUMER_OFFSETS_TOPIC, self.partition_for(group.group_id))
        # To the end under the lock, and in the cache: a commit that comes meanwhile, be it the
        # first of a new group of that name, must be in the log behind the tombstones.
        with group.lock:
            removed = remove_offsets(group)
            if group.is_in(GroupState.EMPTY) and not group.offsets.has_any:
                logger.info("Group %s is empty and has no offsets left", group.group_id)
                group.transition_to(GroupState.DEAD)
            partition = self._replica_manager.get_partition(topic_partition)
            if partition is None:
                return 0
            now_ms = self._time.milliseconds()
            tombstones = [
                SimpleRecord(now_ms, offset_commit_key(group.group_id, committed))
                for committed in removed
            ]
            is_deleted = group.is_in(GroupState.DEAD) and self.get_group(group.group_id) is group
            # A group of generation 0 only stored offsets: it has no record of its own.
            if is_deleted and group.generation_id > 0:
                tombstones.append(SimpleRecord(now_ms, group_metadata_key(group.group_id)))
            if tombstones:
                self._append_tombstones(partition, tombstones)
            if is_deleted:
                self._remove_from_cache(group)
        return len(removed)

    def _append_tombstones(self, partition: Partition, tombstones: list[SimpleRecord]) -> None:
        try:
            # A tombstone that is lost is written again: whoever loads the group expires it again.
            partition.append_records_to_leader(
                MemoryRecords.with_records(*tombstones, compression=self._compression),
                AppendOrigin.COORDINATOR,
                required_acks=0,
            )
        except KafkaError as error:
            logger.warning(
                "%d tombstones could not be appended to %s: %s",
                len(tombstones),
                partition.topic_partition,
                error,
            )

    # Transactions

    def schedule_handle_txn_completion(
        self,
        producer_id: int,
        completed_partitions: Collection[int],
        *,
        is_commit: bool,
        on_complete: TxnCompletionCallback,
    ) -> None:
        """In the background: the caller holds locks that a group's lock must not wait for."""

        def complete() -> None:
            try:
                self.handle_txn_completion(producer_id, completed_partitions, is_commit=is_commit)
            except Exception as error:
                on_complete(error)
            else:
                on_complete(None)

        self._scheduler.schedule_once(f"handleTxnCompletion-{producer_id}", complete)

    def handle_txn_completion(
        self, producer_id: int, completed_partitions: Collection[int], *, is_commit: bool
    ) -> None:
        for group_id in self._producer_groups.groups(producer_id):
            if self.partition_for(group_id) not in completed_partitions:
                continue
            group = self.get_group(group_id)
            if group is None:
                logger.info(
                    "Group %s has moved; its offsets of producer %d go with it",
                    group_id,
                    producer_id,
                )
                continue
            with group.lock:
                if not group.is_in(GroupState.DEAD):
                    group.offsets.complete_transaction(producer_id, is_commit=is_commit)
                    self._producer_groups.remove(producer_id, group_id)
