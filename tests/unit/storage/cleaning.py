"""Builders for the tests of log compaction."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.common.compression import NO_COMPRESSION, Compression
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Record, SimpleRecord
from kafkapy.common.types import TopicPartition
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.cleaner import CheckDone, Cleaner
from kafkapy.storage.cleaner_stats import CleanerStats
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.log_to_clean import LogToClean
from kafkapy.storage.skimpy_offset_map import BYTES_PER_ENTRY, SkimpyOffsetMap
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.utils.cpu_pacer import CpuPacer
from kafkapy.utils.throttler import Throttler
from tests.helpers.mock_time import MockTime
from tests.unit.storage.harness import StorageHarness, marker, read_all

COMPACT = {"cleanup_policy": ("compact",)}
DELETE_RETENTION_MS = 10_000


def compacted_log(storage: StorageHarness, **settings: object) -> UnifiedLog:
    """A log whose tombstones stay for DELETE_RETENTION_MS."""
    return storage.open_log(
        storage.config(**{**COMPACT, "delete_retention_ms": DELETE_RETENTION_MS, **settings})
    )


def keyed(
    *pairs: tuple[str | None, str | None],
    timestamp: int,
    compression: Compression = NO_COMPRESSION,
    magic: int = 2,
    **fields: object,
) -> MemoryRecords:
    """One batch of records with keys; a value of None is a tombstone."""
    simple = [
        SimpleRecord(
            timestamp,
            None if key is None else key.encode(),
            None if value is None else value.encode(),
        )
        for key, value in pairs
    ]
    built = MemoryRecords.with_records(
        *simple,
        compression=compression,
        magic=magic,
        **fields,  # type: ignore[arg-type]
    )
    return MemoryRecords(bytearray(built.buffer))


def put(log: UnifiedLog, time: MockTime, *pairs: tuple[str, str | None], **fields: object) -> int:
    """Appends one batch; returns its first offset."""
    batch = keyed(*pairs, timestamp=time.milliseconds(), **fields)  # type: ignore[arg-type]
    return log.append_as_leader(batch, 0, origin=AppendOrigin.REPLICATION).first_offset


def put_each(log: UnifiedLog, time: MockTime, pairs: Iterable[tuple[str, str | None]]) -> None:
    """One batch for each record."""
    for pair in pairs:
        put(log, time, pair)


class TransactionalProducer:
    """A producer that writes transactions to one log."""

    def __init__(self, log: UnifiedLog, time: MockTime, producer_id: int, epoch: int = 0) -> None:
        self.log = log
        self.producer_id = producer_id
        self.epoch = epoch
        self._time = time
        self._sequence = 0

    def put(self, *pairs: tuple[str, str | None], **fields: object) -> int:
        offset = put(
            self.log,
            self._time,
            *pairs,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._sequence,
            is_transactional=True,
            **fields,
        )
        self._sequence += len(pairs)
        return offset

    def end(self, *, commit: bool) -> int:
        batch = marker(self.producer_id, self.epoch, commit=commit)
        info = self.log.append_as_leader(batch, 0, origin=AppendOrigin.COORDINATOR)
        self.log.update_high_watermark(self.log.log_end_offset)
        return info.first_offset

    def commit(self) -> int:
        return self.end(commit=True)

    def abort(self) -> int:
        return self.end(commit=False)


def never_done(_: TopicPartition) -> None:
    """Nobody interrupts the work."""


def new_cleaner(
    time: MockTime,
    *,
    slots: int = 10_000,
    io_buffer_size: int = 64 * 1024,
    load_factor: float = 0.75,
    check_done: CheckDone = never_done,
) -> Cleaner:
    return Cleaner(
        SkimpyOffsetMap(slots * BYTES_PER_ENTRY),
        io_buffer_size=io_buffer_size,
        dup_buffer_load_factor=load_factor,
        throttler=Throttler(1e300, time),
        pacer=CpuPacer(time),
        time=time,
        check_done=check_done,
    )


def clean(
    log: UnifiedLog,
    time: MockTime,
    *,
    dirty_from: int = 0,
    up_to: int | None = None,
    cleaner: Cleaner | None = None,
) -> tuple[int, CleanerStats]:
    """Compacts everything but the active segment; where the log is dirty from then on."""
    log.update_high_watermark(log.log_end_offset)
    cleanable = LogToClean.measure(
        log, dirty_from, log.active_segment.base_offset if up_to is None else up_to
    )
    return (cleaner or new_cleaner(time)).clean(cleanable)


def roll_and_clean(log: UnifiedLog, time: MockTime, **options: object) -> int:
    log.roll()
    return clean(log, time, **options)[0]  # type: ignore[arg-type]


def data_records(log: UnifiedLog) -> list[Record]:
    """Without markers."""
    found = []
    for segment in log.segments:
        for batch in segment.log.batches():
            if not batch.is_control_batch:
                found += list(batch.records())
    return found


def pairs_of(log: UnifiedLog) -> list[tuple[str, str | None]]:
    """Keys and values of all data records, in order."""
    return [
        ((record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in data_records(log)
    ]


def offsets_of(log: UnifiedLog) -> list[int]:
    return [record.offset for record in read_all(log)]


def read_committed(log: UnifiedLog) -> list[Record]:
    """What a consumer makes of a read_committed fetch."""
    found: list[Record] = []
    offset = log.log_start_offset
    while True:
        info = log.read(offset, 1 << 20, FetchIsolation.TXN_COMMITTED, min_one_message=True)
        assert info.aborted_transactions is not None
        pending = sorted(info.aborted_transactions, key=lambda txn: txn.first_offset)
        aborted: set[int] = set()
        last = offset
        for batch in info.records.batches():
            while pending and pending[0].first_offset <= batch.last_offset:
                aborted.add(pending.pop(0).producer_id)
            last = batch.next_offset
            if batch.is_control_batch:
                aborted.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborted):
                found += [record for record in batch.records() if record.offset >= offset]
        if last == offset:
            return found
        offset = last
