"""Which transactions of a log were aborted, and up to where all of them are decided."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from kafkapy.common.errors import ApiError
from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.common.record.record_batch import MAGIC_VALUE_V2, RecordBatch
from kafkapy.pipeline.segments.segment_files import PartitionLog
from kafkapy.pipeline.segments.segment_scan import floor_position, opened, readable_batches
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.log_file_utils import (
    LOG_FILE_SUFFIX,
    PRODUCER_SNAPSHOT_FILE_SUFFIX,
    TXN_INDEX_FILE_SUFFIX,
    offset_from_file_name,
)
from kafkapy.storage.producer_snapshot_file import ProducerSnapshotFile
from kafkapy.storage.storage_errors import CorruptSnapshotError
from kafkapy.storage.transaction_index import ENTRY, AbortedTxn


@dataclass(frozen=True, slots=True)
class TransactionBounds:
    """What reading committed records only needs to know of a log."""

    last_stable_offset: int
    aborted: tuple[AbortedTxn, ...]

    def aborted_within(self, start_offset: int, end_offset: int) -> tuple[AbortedTxn, ...]:
        """Those that have, or may have, records in a range."""
        return tuple(
            each
            for each in self.aborted
            if each.last_offset >= start_offset and each.first_offset < end_offset
        )


def find_transaction_bounds(log: PartitionLog, end_offset: int) -> TransactionBounds:
    """As of an end offset: a transaction whose marker is not below it is still open.

    The transaction indexes hold what was aborted, but the last one may lack what a crash lost, so
    that the batches of the last segment are looked at too. The producer snapshot from its beginning
    knows the transactions that were open then; where it is missing, an older one has to do.
    """
    open_offsets, scanned_from = _last_snapshot(log, end_offset)
    aborted = {entry[:3]: entry for entry in _indexed(log)}
    for batch in _batches_between(log, scanned_from, end_offset):
        if not batch.is_transactional:
            continue
        producer_id = batch.producer_id
        if not batch.is_control_batch:
            open_offsets.setdefault(producer_id, batch.base_offset)
            continue
        decision = _decision(batch)
        first_offset = open_offsets.pop(producer_id, None) if decision is not None else None
        if first_offset is not None and decision is ControlRecordType.ABORT:
            entry = AbortedTxn(producer_id, first_offset, batch.last_offset, first_offset)
            aborted.setdefault(entry[:3], entry)
    undecided = [entry for entry in aborted.values() if entry.last_offset >= end_offset]
    firsts = [*open_offsets.values(), *(entry.first_offset for entry in undecided)]
    return TransactionBounds(min([*firsts, end_offset]), tuple(aborted.values()))


def _indexed(log: PartitionLog) -> Iterator[AbortedTxn]:
    for segment in log.segments:
        path = segment.path.removesuffix(LOG_FILE_SUFFIX) + TXN_INDEX_FILE_SUFFIX
        try:
            content = OsFileSystem().read_bytes(path)
        except FileNotFoundError:
            continue
        whole = len(content) - len(content) % ENTRY.size
        for version, producer_id, first, last, stable in ENTRY.iter_unpack(content[:whole]):
            yield AbortedTxn(producer_id, first, last, stable, version)


def _last_snapshot(log: PartitionLog, end_offset: int) -> tuple[dict[int, int], int]:
    """First offsets of open transactions by producer id, and the offset of which that is true."""
    latest = min(end_offset, log.segments[-1].base_offset)
    snapshots = [
        (offset, os.path.join(log.directory, name))
        for name in os.listdir(log.directory)
        if name.endswith(PRODUCER_SNAPSHOT_FILE_SUFFIX)
        and (offset := offset_from_file_name(name)) is not None
        and log.segments[0].base_offset <= offset <= latest
    ]
    for offset, path in sorted(snapshots, reverse=True):
        try:
            entries = ProducerSnapshotFile(path, OsFileSystem()).read()
        except (FileNotFoundError, CorruptSnapshotError):
            continue  # an older one costs a longer look
        return {
            entry.producer_id: entry.current_txn_first_offset
            for entry in entries
            if entry.current_txn_first_offset is not None
        }, offset
    return {}, log.segments[0].base_offset


def _batches_between(
    log: PartitionLog, start_offset: int, end_offset: int
) -> Iterator[RecordBatch]:
    first = log.floor(start_offset)
    for number in range(first, len(log.segments)):
        segment = log.segments[number]
        if segment.base_offset >= end_offset:
            return
        position = floor_position(segment, start_offset) if number == first else 0
        with opened(segment) as records:
            for batch in readable_batches(records, segment, position):
                if batch.magic < MAGIC_VALUE_V2 or batch.last_offset < start_offset:
                    continue
                if batch.base_offset >= end_offset:
                    return
                yield batch


def _decision(marker: RecordBatch) -> ControlRecordType | None:
    """None for a marker that cannot be read: its transaction counts as open then."""
    try:
        first = next(marker.records(), None)
        found = ControlRecordType.UNKNOWN if first is None else ControlRecordType.parse(first.key)
    except ApiError:
        return None
    return found if found in (ControlRecordType.ABORT, ControlRecordType.COMMIT) else None
