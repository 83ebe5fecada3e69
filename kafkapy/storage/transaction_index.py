"""The aborted transactions of a segment."""

import os
import struct
import threading
from typing import NamedTuple

from kafkapy.storage.file_system import FileSystem, write_fully
from kafkapy.storage.storage_errors import CorruptIndexError

CURRENT_VERSION = 0
# version, producer id, first offset, last offset, last stable offset
ENTRY = struct.Struct(">hqqqq")


class CompletedTxn(NamedTuple):
    """A transaction whose marker is in the log.

    Ports: org.apache.kafka.storage.internals.log.CompletedTxn
    """

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class AbortedTxn(NamedTuple):
    """One entry of a transaction index.

    Ports: org.apache.kafka.storage.internals.log.AbortedTxn
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    version: int = CURRENT_VERSION


class TxnIndexSearchResult(NamedTuple):
    """Ports: org.apache.kafka.storage.internals.log.TxnIndexSearchResult"""

    aborted_transactions: list[AbortedTxn]
    is_complete: bool


class TransactionIndex:
    """Aborted transactions in the order of their markers. Thread-safe.

    The file appears with the first abort. Its few entries are kept in memory once read.

    Ports: org.apache.kafka.storage.internals.log.TransactionIndex
    """

    def __init__(self, start_offset: int, path: str, file_system: FileSystem) -> None:
        self.start_offset = start_offset  # constant after construction
        self._file_system = file_system
        self._lock = threading.Lock()
        # guarded by self._lock
        self.path = path
        self._entries: list[AbortedTxn] | None = None if file_system.exists(path) else []
        self._is_dirty = False  # not all of it is on disk

    def append(self, aborted: AbortedTxn) -> None:
        with self._lock:
            entries = self._load_locked()
            if entries and entries[-1].last_offset >= aborted.last_offset:
                raise ValueError(
                    f"the last offset {aborted.last_offset} of an aborted transaction is not above "
                    f"{entries[-1].last_offset} in {self.path}"
                )
            data = ENTRY.pack(aborted.version, *aborted[:4])
            self._is_dirty = True
            channel = self._file_system.open(self.path, create=True)
            try:
                write_fully(channel, data, len(entries) * ENTRY.size)
            finally:
                channel.close()
            self._entries = [*entries, aborted]

    def all_aborted_txns(self) -> list[AbortedTxn]:
        with self._lock:
            return list(self._load_locked())

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TxnIndexSearchResult:
        """Those that overlap a fetched range; complete once no later one can."""
        with self._lock:
            entries = self._load_locked()
        found = []
        for aborted in entries:
            if aborted.last_offset >= fetch_offset and aborted.first_offset < upper_bound_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound_offset:
                return TxnIndexSearchResult(found, True)
        return TxnIndexSearchResult(found, False)

    def sanity_check(self) -> None:
        with self._lock:
            for aborted in self._load_locked():
                if aborted.last_offset < self.start_offset:
                    raise CorruptIndexError(
                        f"{self.path} holds a transaction that ends at {aborted.last_offset}, "
                        f"before the segment begins"
                    )

    def truncate_to(self, offset: int) -> None:
        """Removes transactions whose marker is at or above an offset."""
        with self._lock:
            entries = self._load_locked()
            kept = [aborted for aborted in entries if aborted.last_offset < offset]
            if len(kept) != len(entries):
                self._cut_locked(len(kept))
                self._entries = kept

    def reset(self) -> None:
        with self._lock:
            if self._file_system.exists(self.path):
                self._cut_locked(0)
            self._entries = []

    def flush(self) -> None:
        with self._lock:
            if not self._is_dirty:
                return
            try:
                channel = self._file_system.open(self.path)
            except FileNotFoundError:
                # Its directory has just been renamed for deletion.
                return
            try:
                channel.flush()
            finally:
                channel.close()
            self._is_dirty = False

    def rename_to(self, path: str) -> None:
        with self._lock:
            if self._file_system.exists(self.path):
                self._file_system.rename(self.path, path)
            self.path = path

    def update_parent_dir(self, directory: str) -> None:
        with self._lock:
            self.path = os.path.join(directory, os.path.basename(self.path))

    def delete_if_exists(self) -> bool:
        with self._lock:
            return self._file_system.unlink_if_exists(self.path)

    def _load_locked(self) -> list[AbortedTxn]:
        entries = self._entries
        if entries is None:
            data = self._file_system.read_bytes(self.path)
            if len(data) % ENTRY.size:
                raise CorruptIndexError(
                    f"The size of {self.path}, {len(data)}, is not a multiple of {ENTRY.size}"
                )
            entries = []
            for version, producer_id, first, last, stable in ENTRY.iter_unpack(data):
                if version > CURRENT_VERSION:
                    raise CorruptIndexError(f"{self.path} has entries of version {version}")
                entries.append(AbortedTxn(producer_id, first, last, stable, version))
            self._entries = entries
        return entries

    def _cut_locked(self, entries: int) -> None:
        # An entry without its marker would hide records, so a cut must get to disk too.
        self._is_dirty = True
        channel = self._file_system.open(self.path)
        try:
            channel.truncate(entries * ENTRY.size)
        finally:
            channel.close()
