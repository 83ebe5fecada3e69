"""All replicas of a broker."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping

from kafkapy.common.errors import Errors, KafkaError, KafkaStorageError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from kafkapy.common.protocol.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.record.file_records import TimestampAndOffset
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from kafkapy.replication.action_queue import ActionQueue
from kafkapy.replication.alter_partition_manager import AlterPartitionManager
from kafkapy.replication.delayed_delete_records import DeleteRecordsCallback
from kafkapy.replication.delayed_fetch import FetchCallback, FetchInfos
from kafkapy.replication.delayed_operations import DelayedOperations
from kafkapy.replication.delayed_produce import ProduceCallback
from kafkapy.replication.fetcher_manager import FetcherManager
from kafkapy.replication.high_watermark_checkpoints import HighWatermarkCheckpoints
from kafkapy.replication.hosted_partitions import HostedPartitions
from kafkapy.replication.isr_change_listener import IsrChangeListener
from kafkapy.replication.log_dir_failure_handler import LogDirFailureHandler
from kafkapy.replication.partition import EpochEndOffset, Partition
from kafkapy.replication.record_deletions import RecordDeletions
from kafkapy.replication.replica_appends import NO_GUARDS, ReplicaAppends
from kafkapy.replication.replica_fetches import ReplicaFetches
from kafkapy.replication.replica_manager_config import ReplicaManagerConfig
from kafkapy.replication.replica_manager_metrics import ReplicaManagerMetrics
from kafkapy.replication.replica_selector import ReplicaSelector
from kafkapy.replication.replica_state_changes import OnLeadershipChange, ReplicaStateChanges
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.fetch_params import FetchParams
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.storage.verification_state_entry import VerificationGuard
from kafkapy.utils.scheduler import Scheduler
from kafkapy.utils.time import Time
from kafkapy.utils.timer import SystemTimer, Timer

logger = logging.getLogger(__name__)

_INVALID_OFFSET_LAG = -1


class ReplicaManager:
    """The broker's replicas: appends, reads, leadership, ISRs and lost disks. Thread-safe.

    The paths of produce, fetch, delete and state changes are classes of their own; this one wires
    them together and runs what goes on in the background.

    Ports: kafka.server.ReplicaManager
    """

    def __init__(
        self,
        config: ReplicaManagerConfig,
        *,
        broker_id: int,
        time: Time,
        scheduler: Scheduler,
        log_manager: LogManager,
        log_dir_failure_channel: LogDirFailureChannel,
        file_system: FileSystem,
        metadata_cache: MetadataCache,
        alter_partition_manager: AlterPartitionManager,
        broker_topic_stats: BrokerTopicStats,
        metrics: MetricsRegistry,
        inter_broker_listener_name: str = "PLAINTEXT",
        fetcher_manager: FetcherManager | None = None,
        replica_selector: ReplicaSelector | None = None,
        on_log_dir_failure: Callable[[str], None] | None = None,
        on_all_log_dirs_failed: Callable[[], None] | None = None,
        on_thread_failure: Callable[[BaseException], None] | None = None,
        delayed_operations: DelayedOperations | None = None,
    ) -> None:
        # constant after construction
        self._config = config
        self._broker_id = broker_id
        self._time = time
        self._scheduler = scheduler
        self._log_manager = log_manager
        self._file_system = file_system
        self._metadata_cache = metadata_cache
        self._alter_partition_manager = alter_partition_manager
        self._metrics = metrics
        self._fetcher_manager = fetcher_manager
        self._on_log_dir_failure = on_log_dir_failure
        self._on_all_log_dirs_failed = on_all_log_dirs_failed
        self._isr_change_listener = IsrChangeListener(metrics)
        self._action_queue = ActionQueue()
        self._partitions = HostedPartitions(metadata_cache)
        self._gauges = ReplicaManagerMetrics(self._partitions, metrics)
        self.delayed_operations = delayed_operations or _delayed_operations(
            config, broker_id, metrics, lambda name: SystemTimer(name, time)
        )
        self._high_watermarks = HighWatermarkCheckpoints(
            log_manager.live_log_dirs,
            file_system=file_system,
            log_dir_failure_channel=log_dir_failure_channel,
        )
        self._appends = ReplicaAppends(
            partitions=self._partitions,
            delayed_operations=self.delayed_operations,
            broker_topic_stats=broker_topic_stats,
            metrics=metrics,
        )
        self._fetches = ReplicaFetches(
            time=time,
            partitions=self._partitions,
            delayed_operations=self.delayed_operations,
            broker_topic_stats=broker_topic_stats,
            metadata_cache=metadata_cache,
            metrics=metrics,
            replica_selector=replica_selector,
        )
        self._deletions = RecordDeletions(
            partitions=self._partitions,
            delayed_operations=self.delayed_operations,
            metrics=metrics,
        )
        self._state_changes = ReplicaStateChanges(
            local_broker_id=broker_id,
            inter_broker_listener_name=inter_broker_listener_name,
            create_partition=self._create_partition,
            partitions=self._partitions,
            log_manager=log_manager,
            metadata_cache=metadata_cache,
            delayed_operations=self.delayed_operations,
            high_watermarks=self._high_watermarks,
            broker_topic_stats=broker_topic_stats,
            fetcher_manager=fetcher_manager,
            on_first_leader_and_isr=self._start_high_watermark_checkpoints,
        )
        self._log_dir_failure_handler = LogDirFailureHandler(
            log_dir_failure_channel, self.handle_log_dir_failure, on_failure=on_thread_failure
        )
        self._checkpoints_started = threading.Event()
        self._shut_down = threading.Event()

    def startup(self) -> None:
        # Half the lag time: a follower is dropped after at most 1.5 times it.
        self._scheduler.schedule(
            "isr-expiration",
            self.maybe_shrink_isr,
            period_ms=max(1, self._config.replica_lag_time_max_ms // 2),
        )
        self._log_dir_failure_handler.start()

    def answer_waiting_fetches(self) -> None:
        """So that a broker that is stopping need not wait for them; they get what there is."""
        self.delayed_operations.fetch.end_waiting()

    def shutdown(self, *, checkpoint_high_watermarks: bool = True) -> None:
        """Idempotent. Requests that still wait are left unanswered."""
        if self._shut_down.is_set():
            return
        self._shut_down.set()
        logger.info("Shutting down the replica manager")
        with self._state_changes.lock:
            self._state_changes.is_shutting_down = True
        self._log_dir_failure_handler.shutdown()
        if self._fetcher_manager is not None:
            self._fetcher_manager.shutdown()
        self.delayed_operations.shutdown()
        if checkpoint_high_watermarks:
            self.checkpoint_high_watermarks()
        self._gauges.remove()

    def _create_partition(self, topic_partition: TopicPartition) -> Partition:
        return Partition(
            topic_partition,
            local_broker_id=self._broker_id,
            replica_lag_time_max_ms=self._config.replica_lag_time_max_ms,
            time=self._time,
            log_manager=self._log_manager,
            metadata_cache=self._metadata_cache,
            delayed_operations=self.delayed_operations,
            alter_partition_manager=self._alter_partition_manager,
            isr_change_listener=self._isr_change_listener,
            metrics=self._metrics,
        )

    # Partitions and logs

    def get_partition(self, topic_partition: TopicPartition) -> Partition | None:
        """The partition, if it is online here."""
        return self._partitions.get(topic_partition)

    def get_partition_or_raise(self, topic_partition: TopicPartition) -> Partition:
        return self._partitions.get_or_raise(topic_partition)

    def online_partitions(self) -> list[Partition]:
        return self._partitions.online()

    def get_log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        return self._log_manager.get_log(topic_partition)

    def get_log_config(self, topic_partition: TopicPartition) -> LogConfig | None:
        log = self._log_manager.get_log(topic_partition)
        return log.config if log is not None else None

    # Produce

    def append_records(
        self,
        *,
        timeout_ms: int,
        required_acks: int,
        internal_topics_allowed: bool,
        origin: AppendOrigin,
        entries_per_partition: Mapping[TopicPartition, MemoryRecords],
        response_callback: ProduceCallback,
        action_queue: ActionQueue | None = None,
        verification_guards: Mapping[TopicPartition, VerificationGuard] = NO_GUARDS,
    ) -> None:
        """Append, then call back: at once, or with acks=-1 when the records are committed.

        Requests that the append lets complete are completed by the next `try_complete_actions`,
        unless the caller brings a queue of its own. The first append of a transaction to a
        partition needs the guard that its verification has given.
        """
        self._appends.append_records(
            timeout_ms=timeout_ms,
            required_acks=required_acks,
            internal_topics_allowed=internal_topics_allowed,
            origin=origin,
            entries_per_partition=entries_per_partition,
            response_callback=response_callback,
            action_queue=action_queue if action_queue is not None else self._action_queue,
            verification_guards=verification_guards,
        )

    def try_complete_actions(self) -> None:
        """To be called after each request, with no lock held."""
        self._action_queue.try_complete_actions()

    # Fetch

    def fetch_messages(
        self, params: FetchParams, fetch_infos: FetchInfos, response_callback: FetchCallback
    ) -> None:
        self._fetches.fetch_messages(params, fetch_infos, response_callback)

    # Offsets

    def fetch_offset_for_timestamp(
        self,
        topic_partition: TopicPartition,
        *,
        timestamp: int,
        isolation: FetchIsolation | None,
        current_leader_epoch: int | None = None,
        fetch_only_from_leader: bool = True,
    ) -> TimestampAndOffset | None:
        partition = self._partitions.get_or_raise(topic_partition)
        return partition.offset_lookup.fetch_offset_for_timestamp(
            timestamp,
            isolation=isolation,
            current_leader_epoch=current_leader_epoch,
            fetch_only_from_leader=fetch_only_from_leader,
        )

    def legacy_fetch_offsets_for_timestamp(
        self,
        topic_partition: TopicPartition,
        *,
        timestamp: int,
        max_num_offsets: int,
        is_from_consumer: bool,
        fetch_only_from_leader: bool = True,
    ) -> list[int]:
        partition = self._partitions.get_or_raise(topic_partition)
        return partition.offset_lookup.legacy_fetch_offsets_for_timestamp(
            timestamp,
            max_num_offsets,
            is_from_consumer=is_from_consumer,
            fetch_only_from_leader=fetch_only_from_leader,
        )

    def last_offset_for_leader_epoch(
        self,
        topic_partition: TopicPartition,
        *,
        leader_epoch: int,
        current_leader_epoch: int | None = None,
    ) -> EpochEndOffset:
        return self._partitions.get_or_raise(topic_partition).last_offset_for_leader_epoch(
            leader_epoch, current_leader_epoch=current_leader_epoch, fetch_only_from_leader=True
        )

    def delete_records(
        self,
        timeout_ms: int,
        offset_per_partition: Mapping[TopicPartition, int],
        response_callback: DeleteRecordsCallback,
        *,
        allow_internal_topics: bool = False,
    ) -> None:
        self._deletions.delete_records(
            timeout_ms,
            offset_per_partition,
            response_callback,
            allow_internal_topics=allow_internal_topics,
        )

    # The controller's requests

    def become_leader_or_follower(
        self,
        correlation_id: int,
        request: LeaderAndIsrRequest,
        version: int,
        *,
        on_leadership_change: OnLeadershipChange | None = None,
    ) -> LeaderAndIsrResponse:
        return self._state_changes.become_leader_or_follower(
            correlation_id, request, version, on_leadership_change
        )

    def stop_replicas(
        self, correlation_id: int, request: StopReplicaRequest, version: int
    ) -> StopReplicaResponse:
        return self._state_changes.stop_replicas(correlation_id, request, version)

    def maybe_update_metadata_cache(
        self, correlation_id: int, request: UpdateMetadataRequest
    ) -> list[TopicPartition]:
        """The partitions that are gone; ControllerMovedError for an old controller."""
        return self._state_changes.maybe_update_metadata_cache(correlation_id, request)

    # Log directories

    def mark_partition_offline(self, topic_partition: TopicPartition) -> None:
        self._state_changes.mark_partition_offline(topic_partition)

    def handle_log_dir_failure(self, log_dir: str) -> None:
        """Take a directory out of service and tell the controller, or give up after the last."""
        if not self._state_changes.handle_log_dir_failure(log_dir):
            return
        if not self._log_manager.live_log_dirs:
            logger.critical("All log directories have failed; the last was %s", log_dir)
            if self._on_all_log_dirs_failed is not None:
                self._on_all_log_dirs_failed()
        elif self._on_log_dir_failure is not None:
            self._on_log_dir_failure(log_dir)

    def describe_log_dirs(
        self, topic_partitions: Collection[TopicPartition] | None
    ) -> list[DescribeLogDirsResponse.DescribeLogDirsResult]:
        """Every configured directory with the sizes of these partitions, or of all (None)."""
        logs_by_dir: dict[str, list[UnifiedLog]] = {}
        for log in self._log_manager.all_logs():
            logs_by_dir.setdefault(log.parent_dir, []).append(log)
        return [
            self._describe_log_dir(log_dir, logs_by_dir.get(log_dir, []), topic_partitions)
            for log_dir in self._log_manager.log_dirs
        ]

    def _describe_log_dir(
        self,
        log_dir: str,
        logs: list[UnifiedLog],
        topic_partitions: Collection[TopicPartition] | None,
    ) -> DescribeLogDirsResponse.DescribeLogDirsResult:
        try:
            if not self._log_manager.is_log_dir_online(log_dir):
                raise KafkaStorageError(f"the log directory {log_dir} is offline")
            usage = self._file_system.disk_usage(log_dir)
            topics: dict[str, DescribeLogDirsResponse.DescribeLogDirsTopic] = {}
            for log in logs:
                topic, partition_index = log.topic_partition
                if topic_partitions is None or log.topic_partition in topic_partitions:
                    topics.setdefault(
                        topic, DescribeLogDirsResponse.DescribeLogDirsTopic(name=topic)
                    ).partitions.append(
                        DescribeLogDirsResponse.DescribeLogDirsPartition(
                            partition_index=partition_index,
                            partition_size=log.size,
                            offset_lag=self._offset_lag(log),
                        )
                    )
        except (KafkaError, OSError) as error:
            logger.warning("%s cannot be described: %s", log_dir, error)
            code = (
                Errors.for_exception(error)
                if isinstance(error, KafkaError)
                else Errors.KAFKA_STORAGE_ERROR
            )
            return DescribeLogDirsResponse.DescribeLogDirsResult(
                log_dir=log_dir, error_code=code.code
            )
        return DescribeLogDirsResponse.DescribeLogDirsResult(
            log_dir=log_dir,
            topics=list(topics.values()),
            total_bytes=usage.total_bytes,
            usable_bytes=usage.usable_bytes,
        )

    def _offset_lag(self, log: UnifiedLog) -> int:
        """How far the log is behind what is committed."""
        partition = self._partitions.get(log.topic_partition)
        if partition is None or partition.log is None:
            return _INVALID_OFFSET_LAG
        return max(0, log.high_watermark - log.log_end_offset)

    # Background

    def maybe_shrink_isr(self) -> None:
        for partition in self._partitions.online():
            partition.maybe_shrink_isr()

    def checkpoint_high_watermarks(self) -> None:
        self._high_watermarks.write(self._partitions.online())

    def _start_high_watermark_checkpoints(self) -> None:
        if not self._checkpoints_started.is_set():
            self._checkpoints_started.set()
            self._scheduler.schedule(
                "highwatermark-checkpoint",
                self.checkpoint_high_watermarks,
                period_ms=self._config.replica_high_watermark_checkpoint_interval_ms,
            )


def _delayed_operations(
    config: ReplicaManagerConfig,
    broker_id: int,
    metrics: MetricsRegistry,
    timer: Callable[[str], Timer],
) -> DelayedOperations:
    return DelayedOperations(
        produce=DelayedOperationPurgatory(
            "Produce",
            timer("Produce"),
            broker_id,
            config.producer_purgatory_purge_interval_requests,
            metrics,
        ),
        fetch=DelayedOperationPurgatory(
            "Fetch",
            timer("Fetch"),
            broker_id,
            config.fetch_purgatory_purge_interval_requests,
            metrics,
        ),
        delete_records=DelayedOperationPurgatory(
            "DeleteRecords",
            timer("DeleteRecords"),
            broker_id,
            config.delete_records_purgatory_purge_interval_requests,
            metrics,
        ),
    )
