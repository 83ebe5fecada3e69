"""Shows the files of a partition."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kafkapy.common.errors import KafkaError
from kafkapy.common.record.control_record import ControlRecordType, EndTransactionMarker
from kafkapy.common.record.default_record_batch import DefaultRecordBatch
from kafkapy.common.record.file_channel_record_batch import FileChannelRecordBatch
from kafkapy.common.record.file_records import FileRecords
from kafkapy.common.record.legacy_record_batch import LegacyRecordBatch
from kafkapy.common.record.record import NO_TIMESTAMP, Record
from kafkapy.common.record.record_batch import MAGIC_VALUE_V2
from kafkapy.storage import log_file_utils, offset_index, time_index
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.offset_index import OffsetIndex, OffsetPosition
from kafkapy.storage.producer_snapshot_file import ProducerSnapshotFile
from kafkapy.storage.storage_errors import CorruptSnapshotError
from kafkapy.storage.time_index import TimeIndex, TimestampOffset
from kafkapy.storage.transaction_index import TransactionIndex
from kafkapy.tools.java_text import boolean, optional_long, timestamp_type
from kafkapy.tools.log_record_decoders import Decoder

ALL_BYTES = 2**31 - 1
EntryT = TypeVar("EntryT", OffsetPosition, TimestampOffset)


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """What to show of a file."""

    max_bytes: int
    max_message_size: int
    is_deep: bool
    prints_data: bool
    skips_metadata: bool
    only_verifies: bool
    only_checks_sanity: bool
    decoder: Decoder


@dataclass(slots=True)
class _Findings:
    """What does not fit, by absolute path."""

    index_mismatches: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    time_mismatches: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    out_of_order: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    offsets_not_found: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    non_consecutive: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


class LogDump:
    """Prints files one after the other and remembers what does not fit. For one thread.

    Ports: kafka.tools.DumpLogSegments
    """

    def __init__(self, options: DumpOptions) -> None:
        self._options = options
        self._file_system = OsFileSystem()
        self._findings = _Findings()
        self._by_suffix: dict[str, Callable[[str], None]] = {
            log_file_utils.LOG_FILE_SUFFIX: self._dump_log,
            log_file_utils.INDEX_FILE_SUFFIX: self._dump_index,
            log_file_utils.TIME_INDEX_FILE_SUFFIX: self._dump_time_index,
            log_file_utils.TXN_INDEX_FILE_SUFFIX: self._dump_txn_index,
            log_file_utils.PRODUCER_SNAPSHOT_FILE_SUFFIX: self._dump_snapshot,
        }

    def dump(self, file: str) -> None:
        """Raises OSError, or KafkaError for what cannot be understood."""
        print(f"Dumping {file}")
        suffix = Path(file).suffix
        if not suffix:
            raise KafkaError(f"{file} is not named like a file of a partition")
        dump = self._by_suffix.get(suffix)
        if dump is None:
            print(f"Ignoring unknown file {file}", file=sys.stderr)
            return
        dump(file)

    def print_findings(self) -> None:
        findings = self._findings
        _print_pairs(
            "Mismatches in :{}", "  Index offset: {}, log offset: {}", findings.index_mismatches
        )
        _print_pairs(
            "Found timestamp mismatch in :{}",
            "  Index timestamp: {}, log timestamp: {}",
            findings.time_mismatches,
        )
        _print_pairs(
            "Found out of order timestamp in :{}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
            findings.out_of_order,
        )
        _print_pairs(
            "The following indexed offsets are not found in the log.",
            "Indexed offset: {}, found log offset: {}",
            findings.offsets_not_found,
        )
        _print_pairs(
            "Non-consecutive offsets in {}", "  {} is followed by {}", findings.non_consecutive
        )

    def _dump_log(self, file: str) -> None:
        options = self._options
        print(f"Log starting offset: {_base_offset(file)}")
        with closing(self._file_system.open(file, read_only=True)) as channel:
            records = FileRecords(channel, end=options.max_bytes)
            valid_bytes = 0
            last_offset = None
            for batch in records.batches():
                _print_batch(batch, valid_bytes)
                deep = zip(batch.records(), _checksums(batch), strict=False)
                for record, checksum in deep if options.is_deep else ():
                    if last_offset is not None and record.offset != last_offset + 1:
                        _note(self._findings.non_consecutive, file, last_offset, record.offset)
                    last_offset = record.offset
                    self._print_record(batch, record, checksum)
                valid_bytes += batch.size_in_bytes
            trailing = records.size_in_bytes - valid_bytes
        if trailing > 0 and options.max_bytes == ALL_BYTES:
            print(f"Found {trailing} invalid bytes at the end of {os.path.basename(file)}")

    def _print_record(self, batch: FileChannelRecordBatch, record: Record, checksum: str) -> None:
        options = self._options
        line = ""
        prefix = "| "
        if not options.skips_metadata:
            line = (
                f"| offset: {record.offset} {timestamp_type(batch.timestamp_type)}:"
                f" {record.timestamp} keySize: {_size(record.key)} valueSize: {_size(record.value)}"
            )
            prefix = " "
            if batch.magic >= MAGIC_VALUE_V2:
                keys = ",".join(header.key for header in record.headers)
                line += f" sequence: {record.sequence} headerKeys: [{keys}]"
            line += checksum
            if batch.is_control_batch:
                line += _control_record(record)
        if options.prints_data and not batch.is_control_batch:
            key, payload = options.decoder(record)
            if key is not None:
                line += f"{prefix}key: {key}"
            if payload is not None:
                line += f" payload: {payload}"
        print(line)

    def _dump_index(self, file: str) -> None:
        base_offset = _base_offset(file)
        entries = _offset_entries(file, base_offset)
        with closing(self._file_system.open(_segment_of(file), read_only=True)) as channel:
            if not entries:
                print(f"{file} is empty.")
                return
            if self._options.only_checks_sanity:
                self._check_sanity(OffsetIndex, file, base_offset)
                return
            records = FileRecords(channel)
            for entry in _until_hole(entries, base_offset):
                batch = self._batch_at(records, entry)
                if batch.last_offset != entry.offset:
                    mismatch = (entry.offset, batch.last_offset)
                    _note(self._findings.index_mismatches, file, *mismatch)
                if not self._options.only_verifies:
                    print(f"offset: {entry.offset} position: {entry.position}")

    def _batch_at(self, records: FileRecords, entry: OffsetPosition) -> FileChannelRecordBatch:
        if entry.position <= records.size_in_bytes:
            piece = records.slice(entry.position, self._options.max_message_size)
            for batch in piece.batches():
                return batch
        raise KafkaError(
            f"The segment has no batch of at most {self._options.max_message_size} bytes at"
            f" position {entry.position}, which the index has for offset {entry.offset}"
        )

    def _dump_time_index(self, file: str) -> None:
        base_offset = _base_offset(file)
        entries = _time_entries(file, base_offset)
        with closing(self._file_system.open(_segment_of(file), read_only=True)) as channel:
            if self._options.only_checks_sanity:
                self._check_sanity(TimeIndex, file, base_offset)
                return
            index_file = str(Path(file).with_suffix(log_file_utils.INDEX_FILE_SUFFIX))
            positions = _offset_entries(index_file, base_offset)
            records = FileRecords(channel)
            previous = NO_TIMESTAMP
            for entry in _until_hole(entries, base_offset):
                self._verify_time_entry(file, records, positions, entry, previous)
                if not self._options.only_verifies:
                    print(f"timestamp: {entry.timestamp} offset: {entry.offset}")
                previous = entry.timestamp

    def _verify_time_entry(
        self,
        file: str,
        records: FileRecords,
        positions: list[OffsetPosition],
        entry: TimestampOffset,
        previous: int,
    ) -> None:
        findings = self._findings
        start = max((at.position for at in positions if at.offset <= entry.offset), default=0)
        batches = records.batches(start)
        batch = next((b for b in batches if b.last_offset >= entry.offset), None)
        if batch is None or batch.last_offset != entry.offset:
            found = -1 if batch is None else batch.last_offset
            _note(findings.offsets_not_found, file, entry.offset, found)
            return
        youngest = max((record.timestamp for record in batch.records()), default=NO_TIMESTAMP)
        if youngest != entry.timestamp:
            _note(findings.time_mismatches, file, entry.timestamp, youngest)
        if previous >= entry.timestamp:
            _note(findings.out_of_order, file, entry.timestamp, previous)

    def _check_sanity(
        self, kind: type[OffsetIndex] | type[TimeIndex], file: str, base_offset: int
    ) -> None:
        index = kind(file, base_offset, max_index_size=0, file_system=self._file_system)
        try:
            index.sanity_check()
        finally:
            index.close_handler()
        print(f"{file} passed sanity check.")

    def _dump_txn_index(self, file: str) -> None:
        for aborted in TransactionIndex(
            _base_offset(file), file, self._file_system
        ).all_aborted_txns():
            print(
                f"version: {aborted.version} producerId: {aborted.producer_id}"
                f" firstOffset: {aborted.first_offset} lastOffset: {aborted.last_offset}"
                f" lastStableOffset: {aborted.last_stable_offset}"
            )

    def _dump_snapshot(self, file: str) -> None:
        _base_offset(file)
        try:
            entries = ProducerSnapshotFile(file, self._file_system).read()
        except CorruptSnapshotError as e:
            print(e, file=sys.stderr)
            return
        for entry in entries:
            line = (
                f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch}"
                f" coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset:"
                f" {optional_long(entry.current_txn_first_offset)}"
                f" lastTimestamp: {entry.last_timestamp} "
            )
            for batch in list(entry.batch_metadata)[:1]:
                line += (
                    f"firstSequence: {batch.first_seq} lastSequence: {batch.last_seq}"
                    f" lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta}"
                    f" timestamp: {batch.timestamp}"
                )
            print(line)


def _print_batch(batch: FileChannelRecordBatch, position: int) -> None:
    if batch.magic >= MAGIC_VALUE_V2:
        full = batch.load_full_batch()
        assert isinstance(full, DefaultRecordBatch)
        line = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count}"
            f" baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence}"
            f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
            f" partitionLeaderEpoch: {batch.leader_epoch}"
            f" isTransactional: {boolean(batch.is_transactional)}"
            f" isControl: {boolean(batch.is_control_batch)}"
            f" deleteHorizonMs: {optional_long(full.delete_horizon_ms)}"
        )
    else:
        line = f"offset: {batch.last_offset}"
    print(
        f"{line} position: {position} {timestamp_type(batch.timestamp_type)}:"
        f" {batch.max_timestamp} size: {batch.size_in_bytes} magic: {batch.magic}"
        f" compresscodec: {batch.compression_type.codec_name} crc: {batch.crc}"
        f" isvalid: {boolean(batch.is_valid)}"
    )


def _checksums(batch: FileChannelRecordBatch) -> Iterator[str]:
    """What is shown of each record's: only those of old formats have one of their own."""
    if batch.magic < MAGIC_VALUE_V2:
        full = batch.load_full_batch()
        assert isinstance(full, LegacyRecordBatch)
        for stored, is_right in full.checksums():
            yield f" isValid: {boolean(is_right)} crc: {stored}}}"
    yield from itertools.repeat("")


def _control_record(record: Record) -> str:
    control_type = ControlRecordType.parse(record.key)
    if control_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        marker = EndTransactionMarker.deserialize(record)
        return (
            f" endTxnMarker: {marker.control_type.name}"
            f" coordinatorEpoch: {marker.coordinator_epoch}"
        )
    return f" controlType: {control_type.name}({int(control_type)})"


def _base_offset(file: str) -> int:
    name = os.path.basename(file).split(".")[0]
    if not name.isdigit():
        raise KafkaError(f"{file} is not named after the offset it begins with")
    return int(name)


def _segment_of(file: str) -> str:
    return str(Path(file).with_suffix(log_file_utils.LOG_FILE_SUFFIX))


def _offset_entries(file: str, base_offset: int) -> list[OffsetPosition]:
    entry = offset_index.ENTRY
    return [
        OffsetPosition(base_offset + relative, position)
        for relative, position in entry.iter_unpack(_whole_entries(file, entry.size))
    ]


def _time_entries(file: str, base_offset: int) -> list[TimestampOffset]:
    entry = time_index.ENTRY
    return [
        TimestampOffset(timestamp, base_offset + relative)
        for timestamp, relative in entry.iter_unpack(_whole_entries(file, entry.size))
    ]


def _whole_entries(file: str, entry_size: int) -> bytes:
    data = Path(file).read_bytes()
    return data[: len(data) - len(data) % entry_size]


def _until_hole(entries: list[EntryT], base_offset: int) -> Iterator[EntryT]:
    """A broker that runs or has crashed leaves zeros behind the last entry."""
    for number, entry in enumerate(entries):
        if entry.offset == base_offset and number > 0:
            return
        yield entry


def _note(findings: dict[str, list[tuple[int, int]]], file: str, first: int, second: int) -> None:
    # The latest first, as Kafka lists them.
    findings.setdefault(os.path.abspath(file), []).insert(0, (first, second))


def _print_pairs(title: str, pair: str, findings: dict[str, list[tuple[int, int]]]) -> None:
    for file, pairs in findings.items():
        print(title.format(file), file=sys.stderr)
        for first, second in pairs:
            print(pair.format(first, second), file=sys.stderr)


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
