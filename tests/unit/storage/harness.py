"""Builders for the tests of the storage layer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from kafkapy.common.compression import NO_COMPRESSION, Compression
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.record.control_record import ControlRecordType, EndTransactionMarker
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Record, SimpleRecord
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.cleaner_config import CleanerConfig
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.file_system import FileSystem, OsFileSystem
from kafkapy.storage.log_config import LogConfig, LogManagerConfig
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_factory import open_log
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.producer_state_manager_config import ProducerStateManagerConfig
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.storage.unified_log import UnifiedLog
from tests.helpers.mock_time import MockTime

SMALL_INDEX = 1000 * 12
TIMESTAMP = 1_700_000_000_000


def records(
    *values: str,
    offset: int = 0,
    timestamp: int | None = None,
    key: bytes | None = b"k",
    compression: Compression = NO_COMPRESSION,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    leader_epoch: int = -1,
    transactional: bool = False,
    magic: int = 2,
) -> MemoryRecords:
    """One batch, as a producer sends it; timestamps count up from TIMESTAMP."""
    simple = [
        SimpleRecord(TIMESTAMP + i if timestamp is None else timestamp, key, value.encode())
        for i, value in enumerate(values or ("value",))
    ]
    built = MemoryRecords.with_records(
        *simple,
        compression=compression,
        magic=magic,
        initial_offset=offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        leader_epoch=leader_epoch,
        is_transactional=transactional,
    )
    return MemoryRecords(bytearray(built.buffer))


def marker(
    producer_id: int, producer_epoch: int, *, commit: bool, coordinator_epoch: int = 0
) -> MemoryRecords:
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    built = MemoryRecords.with_end_transaction_marker(
        EndTransactionMarker(kind, coordinator_epoch),
        timestamp=TIMESTAMP,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )
    return MemoryRecords(bytearray(built.buffer))


def joined(*parts: MemoryRecords) -> MemoryRecords:
    return MemoryRecords(bytearray(b"".join(bytes(part.buffer) for part in parts)))


class StorageHarness:
    """An environment with a mock clock, and logs in it."""

    def __init__(
        self, directory: Path, file_system: FileSystem | None = None, time: MockTime | None = None
    ) -> None:
        self.log_dir = str(directory)
        self.time = time or MockTime()
        self.file_system = file_system or OsFileSystem()
        self.metrics = MetricsRegistry()
        self.failures = LogDirFailureChannel()
        self.stats = BrokerTopicStats(self.metrics)
        self.environment = StorageEnvironment(
            self.file_system,
            self.time,
            self.time.scheduler,
            self.failures,
            self.stats,
            self.metrics,
            random.Random(1),
        )
        self._opened: dict[str, UnifiedLog] = {}  # by directory

    def config(self, **settings: object) -> LogConfig:
        return LogConfig(**{"segment_index_bytes": SMALL_INDEX, **settings})  # type: ignore[arg-type]

    def partition_dir(self, name: str = "topic-0") -> str:
        return f"{self.log_dir}/{name}"

    def open_log(
        self,
        config: LogConfig | None = None,
        *,
        name: str = "topic-0",
        clean: bool = True,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        topic_id: UUID | None = None,
    ) -> UnifiedLog:
        path = self.partition_dir(name)
        self.file_system.makedirs(path)
        # Who opens a log again plays a new process; the files of the one that died are closed.
        if (before := self._opened.pop(path, None)) is not None:
            before.close_handlers()
        self._opened[path] = log = open_log(
            path,
            config or self.config(),
            self.environment,
            had_clean_shutdown=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            topic_id=topic_id,
            producer_state_config=ProducerStateManagerConfig(),
        )
        return log

    def log_manager(
        self,
        *log_dirs: str,
        default_config: LogConfig | None = None,
        cleaner_config: CleanerConfig | None = None,
        **settings: object,
    ) -> LogManager:
        return LogManager(
            LogManagerConfig(
                log_dirs=log_dirs or (self.log_dir,),
                **settings,  # type: ignore[arg-type]
            ),
            default_config or self.config(),
            scheduler=self.time.scheduler,
            time=self.time,
            log_dir_failure_channel=self.failures,
            file_system=self.file_system,
            broker_topic_stats=self.stats,
            metrics=self.metrics,
            cleaner_config=cleaner_config,
            rng=random.Random(1),
        )


def append(log: UnifiedLog, *values: str, epoch: int = 0, **fields: object) -> int:
    """One batch; returns its first offset."""
    batch = records(*values, **fields)  # type: ignore[arg-type]
    return log.append_as_leader(batch, epoch).first_offset


def read_all(
    log: UnifiedLog,
    start: int | None = None,
    *,
    isolation: FetchIsolation = FetchIsolation.LOG_END,
    max_length: int = 1 << 20,
) -> list[Record]:
    """Every record from `start` on, fetched as a consumer would."""
    return list(
        _read_all(log, log.log_start_offset if start is None else start, isolation, max_length)
    )


def _read_all(
    log: UnifiedLog, offset: int, isolation: FetchIsolation, max_length: int
) -> Iterator[Record]:
    while True:
        info = log.read(offset, max_length, isolation, min_one_message=True)
        next_offset = offset
        for batch in info.records.batches():
            for record in batch.records():
                if record.offset >= offset:
                    yield record
            next_offset = batch.next_offset
        if next_offset == offset:
            return
        offset = next_offset


def values_of(log: UnifiedLog, **options: object) -> list[str]:
    found = read_all(log, **options)  # type: ignore[arg-type]
    return [(record.value or b"").decode() for record in found]
