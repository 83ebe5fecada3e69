"""The producers of a partition as they were at one offset, on disk."""

import os
import struct
from collections.abc import Iterable

from kafkapy.storage.file_system import FileSystem, write_fully
from kafkapy.storage.log_file_utils import DELETED_FILE_SUFFIX, offset_from_file_name
from kafkapy.storage.producer_state_entry import BatchMetadata, ProducerStateEntry
from kafkapy.storage.storage_errors import CorruptSnapshotError
from kafkapy.utils.checksums import crc32c

_VERSION = 1
_HEADER = struct.Struct(">hI")  # version, CRC-32C of everything after it
_COUNT = struct.Struct(">i")
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch,
# first offset of the open transaction
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_OFFSET = -1


class ProducerSnapshotFile:
    """`<offset>.snapshot` in a partition directory. Not thread-safe.

    Ports: org.apache.kafka.storage.internals.log.SnapshotFile
    """

    __slots__ = ("_file_system", "offset", "path")

    def __init__(self, path: str, file_system: FileSystem) -> None:
        offset = offset_from_file_name(path)
        if offset is None:
            raise ValueError(f"{path} is not named like a producer snapshot")
        self.path = path
        self.offset = offset
        self._file_system = file_system

    def write(self, entries: Iterable[ProducerStateEntry], *, sync: bool) -> None:
        packed = [
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                entry.last_seq,
                entry.last_data_offset,
                entry.last_offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                _NO_OFFSET
                if entry.current_txn_first_offset is None
                else entry.current_txn_first_offset,
            )
            for entry in entries
        ]
        body = b"".join((_COUNT.pack(len(packed)), *packed))
        channel = self._file_system.open(self.path, create=True)
        try:
            channel.truncate(0)
            write_fully(channel, _HEADER.pack(_VERSION, crc32c(body)) + body, 0)
            if sync:
                channel.flush()
        finally:
            channel.close()

    def read(self) -> list[ProducerStateEntry]:
        """Raises CorruptSnapshotError for anything that `write` did not write."""
        data = self._file_system.read_bytes(self.path)
        if len(data) < _HEADER.size + _COUNT.size:
            raise CorruptSnapshotError(f"{self.path} is cut off after {len(data)} bytes")
        version, crc = _HEADER.unpack_from(data)
        if version != _VERSION:
            raise CorruptSnapshotError(f"{self.path} has version {version}, expected {_VERSION}")
        body = memoryview(data)[_HEADER.size :]
        if crc32c(body) != crc:
            raise CorruptSnapshotError(f"The checksum of {self.path} is wrong")
        (count,) = _COUNT.unpack_from(body)
        entries = body[_COUNT.size :]
        if len(entries) != count * _ENTRY.size:
            raise CorruptSnapshotError(f"{self.path} does not hold {count} entries")
        return [_entry(*fields) for fields in _ENTRY.iter_unpack(entries)]

    def flush(self) -> None:
        """No error if it has been deleted meanwhile."""
        try:
            channel = self._file_system.open(self.path)
        except FileNotFoundError:
            return
        try:
            channel.flush()
        finally:
            channel.close()

    def delete_if_exists(self) -> bool:
        return self._file_system.unlink_if_exists(self.path)

    def rename_to_deleted(self) -> None:
        if self.path.endswith(DELETED_FILE_SUFFIX):
            return
        target = self.path + DELETED_FILE_SUFFIX
        if self._file_system.exists(self.path):
            self._file_system.rename(self.path, target)
        self.path = target

    def update_parent_dir(self, directory: str) -> None:
        self.path = os.path.join(directory, os.path.basename(self.path))


def _entry(
    producer_id: int,
    epoch: int,
    last_seq: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    current_txn_first_offset: int,
) -> ProducerStateEntry:
    return ProducerStateEntry(
        producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        last_timestamp=timestamp,
        current_txn_first_offset=None
        if current_txn_first_offset == _NO_OFFSET
        else current_txn_first_offset,
        first_batch=BatchMetadata(last_seq, last_offset, offset_delta, timestamp)
        if last_offset >= 0
        else None,
    )
