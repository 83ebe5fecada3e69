"""A replica manager over real logs, with a mock clock and the controller's part played by hand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from kafkapy.common.config_def import parse
from kafkapy.common.errors import KafkaError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicIdPartition, TopicPartition
from kafkapy.metadata.leader_and_isr import LeaderAndIsr
from kafkapy.metadata.metadata_cache import MetadataCache
from kafkapy.purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from kafkapy.replication.delayed_operations import DelayedOperations
from kafkapy.replication.fetch_partition_result import FetchPartitionResult
from kafkapy.replication.partition import Partition
from kafkapy.replication.partition_response import PartitionResponse
from kafkapy.replication.replica_manager import ReplicaManager
from kafkapy.replication.replica_manager_config import ReplicaManagerConfig
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.fetch_params import ClientMetadata, FetchParams, FetchPartitionData
from kafkapy.storage.file_system import OsFileChannel, OsFileSystem
from kafkapy.storage.log_config import LogConfig, LogManagerConfig
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_manager import LogManager
from kafkapy.utils.varint import BytesLike
from tests.helpers.mock_time import MockTime
from tests.helpers.mock_timer import MockTimer
from tests.helpers.records import records

TOPIC_ID = UUID(int=42)
TP = TopicPartition("t", 0)
LISTENER = "PLAINTEXT"


class _UnsyncedChannel(OsFileChannel):
    __slots__ = ("_file_system",)

    def __init__(self, fd: int, path: str, file_system: UnsyncedFileSystem) -> None:
        super().__init__(fd, path)
        self._file_system = file_system

    def read_at(self, size: int, position: int) -> bytes:
        self._file_system.maybe_raise_surprise()
        return super().read_at(size, position)

    def write_at(self, data: BytesLike, position: int) -> int:
        self._file_system.maybe_raise_surprise()
        return super().write_at(data, position)

    def flush(self) -> None: ...


class UnsyncedFileSystem(OsFileSystem):
    """Real files that are never forced to disk: these tests do not crash.

    `surprise` is raised by the next read or write: something no disk would say.
    """

    def __init__(self) -> None:
        self.surprise: Exception | None = None

    def maybe_raise_surprise(self) -> None:
        surprise, self.surprise = self.surprise, None
        if surprise is not None:
            raise surprise

    def open(self, path: str, *, create: bool = False, read_only: bool = False) -> OsFileChannel:
        flags = (os.O_RDONLY if read_only else os.O_RDWR) | (os.O_CREAT if create else 0)
        return _UnsyncedChannel(os.open(path, flags | os.O_CLOEXEC, 0o644), path, self)

    def fsync_dir(self, path: str) -> None: ...


class FakeAlterPartitionManager:
    """Remembers what was submitted; the test answers, or it accepts everything at once."""

    def __init__(self, *, accept: bool = True) -> None:
        self.accept = accept
        self.submitted: list[LeaderAndIsr] = []
        self.callbacks = []

    def start(self) -> None: ...

    def shutdown(self) -> None: ...

    def submit(self, topic_id_partition, leader_and_isr, controller_epoch, callback) -> None:
        self.submitted.append(leader_and_isr)
        if self.accept:
            callback(leader_and_isr.with_partition_epoch(leader_and_isr.partition_epoch + 1))
        else:
            self.callbacks.append(callback)

    def answer(self, answer: LeaderAndIsr | KafkaError) -> None:
        self.callbacks.pop(0)(answer)


class ReplicaHarness:
    def __init__(
        self,
        directory: Path,
        time: MockTime,
        *,
        broker_id: int = 1,
        log_dirs: int = 1,
        lag_ms: int = 1000,
        log_defaults: dict[str, str] | None = None,
        alive_brokers: Sequence[int] = (1, 2, 3),
        accept_isr: bool = True,
        real_purgatories: bool = False,
        transaction_verification: bool = False,
        **replica_manager_arguments,
    ) -> None:
        self.time = time
        self.broker_id = broker_id
        self.alive_brokers = list(alive_brokers)
        self.log_dirs = [str(directory / f"logs-{i}") for i in range(log_dirs)]
        for log_dir in self.log_dirs:
            Path(log_dir).mkdir(parents=True, exist_ok=True)
        self.metrics = MetricsRegistry()
        self.broker_topic_stats = BrokerTopicStats(self.metrics)
        self.log_dir_failure_channel = LogDirFailureChannel()
        self.file_system = UnsyncedFileSystem()
        self.log_manager = LogManager(
            LogManagerConfig(
                log_dirs=tuple(self.log_dirs),
                transaction_partition_verification_enable=transaction_verification,
            ),
            parse(LogConfig, log_defaults or {}),
            scheduler=time.scheduler,
            time=time,
            log_dir_failure_channel=self.log_dir_failure_channel,
            file_system=self.file_system,
            broker_topic_stats=self.broker_topic_stats,
            metrics=self.metrics,
        )
        self.log_manager.startup()
        self.metadata_cache = MetadataCache(broker_id)
        self.alter_partition_manager = FakeAlterPartitionManager(accept=accept_isr)
        self.timer = MockTimer(time)
        self.delayed_operations = DelayedOperations(
            produce=self._purgatory("Produce"),
            fetch=self._purgatory("Fetch"),
            delete_records=self._purgatory("DeleteRecords"),
        )
        self.replica_manager = ReplicaManager(
            ReplicaManagerConfig(replica_lag_time_max_ms=lag_ms),
            broker_id=broker_id,
            time=time,
            scheduler=time.scheduler,
            log_manager=self.log_manager,
            log_dir_failure_channel=self.log_dir_failure_channel,
            file_system=self.file_system,
            metadata_cache=self.metadata_cache,
            alter_partition_manager=self.alter_partition_manager,
            broker_topic_stats=self.broker_topic_stats,
            metrics=self.metrics,
            delayed_operations=None if real_purgatories else self.delayed_operations,
            **replica_manager_arguments,
        )

    def _purgatory(self, name: str) -> DelayedOperationPurgatory:
        return DelayedOperationPurgatory(
            name, MockTimer(self.time), self.broker_id, 1000, self.metrics, reaper_enabled=False
        )

    def close(self) -> None:
        self.replica_manager.shutdown()
        self.log_manager.shutdown()

    # The controller's part

    def update_metadata(
        self, tp: TopicPartition = TP, *, replicas: Sequence[int] = (1,), **fields
    ) -> None:
        self.replica_manager.maybe_update_metadata_cache(
            0,
            UpdateMetadataRequest(
                controller_id=1,
                controller_epoch=fields.get("controller_epoch", 1),
                live_brokers=[
                    UpdateMetadataRequest.UpdateMetadataBroker(
                        id=broker,
                        endpoints=[
                            UpdateMetadataRequest.UpdateMetadataEndpoint(
                                port=9092, host=f"host{broker}", listener=LISTENER
                            )
                        ],
                        rack=f"rack{broker}",
                    )
                    for broker in self.alive_brokers
                ],
                topic_states=[
                    UpdateMetadataRequest.UpdateMetadataTopicState(
                        topic_name=tp.topic,
                        topic_id=fields.get("topic_id", TOPIC_ID),
                        partition_states=[
                            UpdateMetadataRequest.UpdateMetadataPartitionState(
                                partition_index=tp.partition,
                                leader=fields.get("leader", self.broker_id),
                                isr=list(replicas),
                                replicas=list(replicas),
                            )
                        ],
                    )
                ],
            ),
        )

    def leader_and_isr(
        self,
        *partitions: TopicPartition,
        leader: int | None = None,
        leader_epoch: int = 0,
        partition_epoch: int = 0,
        replicas: Sequence[int] = (1,),
        isr: Sequence[int] | None = None,
        adding: Sequence[int] = (),
        controller_epoch: int = 1,
        topic_id: UUID = TOPIC_ID,
        is_new: bool = True,
        version: int = 7,
        **arguments,
    ) -> LeaderAndIsrResponse:
        states = {
            tp: LeaderAndIsrRequest.LeaderAndIsrPartitionState(
                topic_name=tp.topic,
                partition_index=tp.partition,
                controller_epoch=controller_epoch,
                leader=self.broker_id if leader is None else leader,
                leader_epoch=leader_epoch,
                partition_epoch=partition_epoch,
                isr=list(replicas if isr is None else isr),
                replicas=list(replicas),
                adding_replicas=list(adding),
                is_new=is_new,
            )
            for tp in partitions or (TP,)
        }
        request = LeaderAndIsrRequest(controller_id=1, controller_epoch=controller_epoch)
        if version < 2:
            request.ungrouped_partition_states = list(states.values())
        else:
            request.topic_states = [
                LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=topic,
                    topic_id=topic_id,
                    partition_states=[state for tp, state in states.items() if tp.topic == topic],
                )
                for topic in dict.fromkeys(tp.topic for tp in states)
            ]
        return self.replica_manager.become_leader_or_follower(0, request, version, **arguments)

    def lead(self, tp: TopicPartition = TP, **fields) -> Partition:
        """Make this broker the leader of a partition that exists in the cluster."""
        self.update_metadata(tp, replicas=fields.get("replicas", (1,)))
        self.leader_and_isr(tp, **fields)
        partition = self.replica_manager.get_partition(tp)
        assert partition is not None and partition.is_leader
        return partition

    def stop(
        self, tp: TopicPartition = TP, *, delete: bool, leader_epoch: int = -1, **fields
    ) -> StopReplicaResponse:
        return self.replica_manager.stop_replicas(
            0,
            StopReplicaRequest(
                controller_id=1,
                controller_epoch=fields.get("controller_epoch", 1),
                topic_states=[
                    StopReplicaRequest.StopReplicaTopicState(
                        topic_name=tp.topic,
                        partition_states=[
                            StopReplicaRequest.StopReplicaPartitionState(
                                partition_index=tp.partition,
                                leader_epoch=leader_epoch,
                                delete_partition=delete,
                            )
                        ],
                    )
                ],
            ),
            version=4,
        )

    # The clients' part

    def produce(
        self,
        entries: dict[TopicPartition, MemoryRecords] | MemoryRecords | str = "value",
        *,
        acks: int = 1,
        timeout_ms: int = 1000,
        internal: bool = False,
    ) -> list[dict[TopicPartition, PartitionResponse]]:
        """What the callback got so far: nothing while the produce waits."""
        if isinstance(entries, str):
            entries = records(entries)
        if isinstance(entries, MemoryRecords):
            entries = {TP: entries}
        answers: list[dict[TopicPartition, PartitionResponse]] = []
        self.replica_manager.append_records(
            timeout_ms=timeout_ms,
            required_acks=acks,
            internal_topics_allowed=internal,
            origin=AppendOrigin.CLIENT,
            entries_per_partition=entries,
            response_callback=answers.append,
        )
        self.replica_manager.try_complete_actions()
        return answers

    def fetch(
        self,
        *offsets: tuple[TopicPartition, int] | int,
        replica_id: int = -1,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        partition_max_bytes: int = 1 << 20,
        isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
        version: int = 12,
        topic_id: UUID = TOPIC_ID,
        current_leader_epoch: int | None = None,
        last_fetched_epoch: int | None = None,
        log_start_offset: int = 0,
        client_metadata: ClientMetadata | None = None,
    ) -> list[list[tuple[TopicIdPartition, FetchPartitionResult]]]:
        """What the callback got so far: nothing while the fetch waits."""
        answers: list[list[tuple[TopicIdPartition, FetchPartitionResult]]] = []
        self.replica_manager.fetch_messages(
            FetchParams(
                request_version=version,
                replica_id=replica_id,
                replica_epoch=1,
                max_wait_ms=max_wait_ms,
                min_bytes=min_bytes,
                max_bytes=max_bytes,
                isolation=FetchIsolation.LOG_END if replica_id >= 0 else isolation,
                client_metadata=client_metadata,
            ),
            [
                (
                    TopicIdPartition(topic_id, tp),
                    FetchPartitionData(
                        topic_id=topic_id,
                        fetch_offset=offset,
                        log_start_offset=log_start_offset,
                        max_bytes=partition_max_bytes,
                        current_leader_epoch=current_leader_epoch,
                        last_fetched_epoch=last_fetched_epoch,
                    ),
                )
                for tp, offset in (
                    (TP, item) if isinstance(item, int) else item for item in offsets
                )
            ],
            answers.append,
        )
        return answers

    def append(self, batch: MemoryRecords, callback) -> None:
        """A produce with acks=-1 that takes long to time out."""
        self.replica_manager.append_records(
            timeout_ms=600_000,
            required_acks=-1,
            internal_topics_allowed=False,
            origin=AppendOrigin.CLIENT,
            entries_per_partition={TP: batch},
            response_callback=callback,
        )
        self.replica_manager.try_complete_actions()

    def fetch_into(self, offset: int, replica_id: int, callback) -> None:
        """A fetch of any amount that takes long to time out."""
        self.replica_manager.fetch_messages(
            FetchParams(
                request_version=12,
                replica_id=replica_id,
                replica_epoch=1,
                max_wait_ms=600_000,
                min_bytes=1,
                max_bytes=1 << 20,
                isolation=(
                    FetchIsolation.LOG_END if replica_id >= 0 else FetchIsolation.HIGH_WATERMARK
                ),
            ),
            [(TopicIdPartition(TOPIC_ID, TP), FetchPartitionData(TOPIC_ID, offset, 0, 1 << 20))],
            callback,
        )

    def expire(self, ms: int) -> None:
        """Let that much time pass for whatever waits."""
        self.time.sleep(ms)
        for purgatory in (
            self.delayed_operations.produce,
            self.delayed_operations.fetch,
            self.delayed_operations.delete_records,
        ):
            purgatory.advance_clock(0)

    def metric(self, name: str, **labels: object) -> float:
        wanted = {key: str(value) for key, value in labels.items()}
        values = [
            sample.value
            for sample in self.metrics.samples()
            if sample.spec.name == name and dict(sample.labels) == wanted
        ]
        assert len(values) == 1, (name, labels, values)
        return values[0]
