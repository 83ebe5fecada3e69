"""What the memory-mapped indexes of a segment have in common."""

import mmap
import os
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from kafkapy.common.errors import KafkaStorageError
from kafkapy.storage.file_system import FileSystem, write_fully
from kafkapy.storage.log_file_utils import DELETED_FILE_SUFFIX
from kafkapy.storage.storage_errors import LogSegmentOffsetOverflowError

INT_MAX = (1 << 31) - 1
_PAGE_BYTES = 4096
# Nearly all lookups are near the end; these bytes stay in the page cache and are searched first.
_WARM_BYTES = 8192

Unpack = Callable[[Any, int], tuple[Any, ...]]


class AbstractIndex:
    """A file of fixed-size entries in ascending order, mapped into memory. Thread-safe.

    The active segment's file has its full size with a hole behind the last entry; it shrinks to
    what it holds when the segment is rolled or closed. No descriptor is kept but the mapping's.

    Ports: org.apache.kafka.storage.internals.log.AbstractIndex
    """

    ENTRY_SIZE: ClassVar[int]

    def __init__(
        self, path: str, base_offset: int, *, max_index_size: int, file_system: FileSystem
    ) -> None:
        self.base_offset = base_offset  # constant after construction
        # Room for one entry at least: segment.index.bytes may be less.
        self.max_index_size = max(max_index_size, self.ENTRY_SIZE)
        self._file_system = file_system
        self._warm_entries = _WARM_BYTES // self.ENTRY_SIZE
        self._lock = threading.Lock()
        # guarded by self._lock
        self.path = path
        self._mmap: mmap.mmap | None = None
        self._length = 0
        self._entries = 0
        self._max_entries = 0
        # Bytes that have blocks on disk. A store into the hole behind them would raise SIGBUS,
        # not OSError, on a full disk.
        self._allocated = 0
        newly_created = not file_system.exists(path)
        channel = file_system.open(path, create=True)
        try:
            if newly_created:
                channel.truncate(self._round_down(self.max_index_size))
            self._map_locked(channel.fileno(), channel.size())
        finally:
            channel.close()
        if not newly_created:
            self._entries = self._max_entries
            self._allocated = self._length

    @property
    def entries(self) -> int:
        return self._entries

    @property
    def max_entries(self) -> int:
        return self._max_entries

    @property
    def length(self) -> int:
        """The size of the file."""
        return self._length

    @property
    def size_in_bytes(self) -> int:
        return self._entries * self.ENTRY_SIZE

    @property
    def is_full(self) -> bool:
        return self._entries >= self._max_entries

    def can_append_offset(self, offset: int) -> bool:
        return 0 <= offset - self.base_offset <= INT_MAX

    def relative_offset(self, offset: int) -> int:
        relative = offset - self.base_offset
        if not 0 <= relative <= INT_MAX:
            raise LogSegmentOffsetOverflowError(
                f"The offset {offset} does not fit the index {self.path}"
            )
        return relative

    def resize(self, new_size: int) -> bool:
        """Sets the size of the file, keeping the entries; whether that changed anything."""
        with self._lock:
            return self._resize_locked(new_size)

    def trim_to_valid_size(self) -> None:
        """Cuts the file behind the last entry."""
        with self._lock:
            self._resize_locked(self._entries * self.ENTRY_SIZE)

    def reset(self) -> None:
        """Forgets all entries and makes room for a full index."""
        with self._lock:
            self._truncate_to_entries_locked(0)
            # What the file held may be anything, holes included.
            self._allocated = 0
            self._resize_locked(self.max_index_size)

    def flush(self) -> None:
        with self._lock:
            # Through the mapping: the file may be renamed or deleted at any moment.
            if self._mmap is not None:
                self._file_system.flush_mapping(self._mmap, self.path)

    def rename_to(self, path: str) -> None:
        with self._lock:
            if self._file_system.exists(self.path):
                self._file_system.rename(self.path, path)
            self.path = path

    def update_parent_dir(self, directory: str) -> None:
        with self._lock:
            self.path = os.path.join(directory, os.path.basename(self.path))

    def delete_if_exists(self) -> bool:
        self.close_handler()
        return self._file_system.unlink_if_exists(self.path)

    def close(self) -> None:
        with self._lock:
            if self._mmap is not None and not self.path.endswith(DELETED_FILE_SUFFIX):
                self._resize_locked(self._entries * self.ENTRY_SIZE)
            self._unmap_locked()

    def close_handler(self) -> None:
        """Lets go of the file without writing to it."""
        with self._lock:
            self._unmap_locked()

    def truncate(self) -> None:
        """Forgets all entries; the file keeps its size."""
        with self._lock:
            self._truncate_to_entries_locked(0)

    def _truncate_to_entries_locked(self, entries: int) -> None:
        self._entries = entries

    def _resize_locked(self, new_size: int) -> bool:
        # Not below the entries, though the greatest size may have been lowered since they came.
        rounded = max(self._round_down(new_size), self._entries * self.ENTRY_SIZE)
        if self._length == rounded:
            return False
        channel = self._file_system.open(self.path, create=True)
        try:
            self._unmap_locked()
            channel.truncate(rounded)
            self._map_locked(channel.fileno(), rounded)
        finally:
            channel.close()
        self._allocated = min(self._allocated, rounded)
        return True

    def _allocate_locked(self, end: int) -> None:
        """Gives the page that `end` falls into blocks on disk; raises OSError if there are none."""
        target = min(-(-end // _PAGE_BYTES) * _PAGE_BYTES, self._length)
        channel = self._file_system.open(self.path)
        try:
            write_fully(channel, bytes(target - self._allocated), self._allocated)
        finally:
            channel.close()
        self._allocated = target

    def _map_locked(self, fileno: int, length: int) -> None:
        self._length = length
        self._max_entries = length // self.ENTRY_SIZE
        # An empty file cannot be mapped, and has nothing to look up.
        self._mmap = mmap.mmap(fileno, length) if length else None

    def _unmap_locked(self) -> None:
        if self._mmap is not None:
            self._mmap.close()
            self._mmap = None

    def _mapped_locked(self) -> mmap.mmap:
        if self._mmap is None:
            raise KafkaStorageError(f"The index {self.path} is closed")
        return self._mmap

    def _lower_bound_slot_locked(self, unpack: Unpack, key_at: int, target: int) -> int:
        """The last entry whose key, `key_at` bytes into it, is at most `target`; -1 if none is."""
        last = self._entries - 1
        if last < 0:
            return -1
        buffer = self._mapped_locked()
        size = self.ENTRY_SIZE
        if unpack(buffer, last * size + key_at)[0] <= target:
            return last
        low, high = 0, last - 1
        warm = last - self._warm_entries
        if warm > 0:
            if unpack(buffer, warm * size + key_at)[0] <= target:
                low = warm
            else:
                high = warm - 1
        if high < low or unpack(buffer, low * size + key_at)[0] > target:
            return -1
        while low < high:
            middle = (low + high + 1) >> 1
            if unpack(buffer, middle * size + key_at)[0] <= target:
                low = middle
            else:
                high = middle - 1
        return low

    def _round_down(self, size: int) -> int:
        return size - size % self.ENTRY_SIZE
