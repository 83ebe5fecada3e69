"""From timestamps to offsets."""

import struct
from typing import ClassVar, NamedTuple

from kafkapy.storage.abstract_index import AbstractIndex
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.storage_errors import CorruptIndexError, InvalidOffsetError

ENTRY = struct.Struct(">qi")  # timestamp, offset relative to the base
_TIMESTAMP = struct.Struct(">q")
_RELATIVE_OFFSET = struct.Struct(">i")
NO_TIMESTAMP = -1


class TimestampOffset(NamedTuple):
    """Ports: org.apache.kafka.storage.internals.log.TimestampOffset"""

    timestamp: int
    offset: int


UNKNOWN_TIMESTAMP_OFFSET = TimestampOffset(NO_TIMESTAMP, -1)


class TimeIndex(AbstractIndex):
    """An entry says that no record up to its offset is younger than its timestamp. Thread-safe.

    Ports: org.apache.kafka.storage.internals.log.TimeIndex
    """

    ENTRY_SIZE: ClassVar[int] = ENTRY.size

    def __init__(
        self, path: str, base_offset: int, *, max_index_size: int, file_system: FileSystem
    ) -> None:
        super().__init__(path, base_offset, max_index_size=max_index_size, file_system=file_system)
        # guarded by self._lock
        self._last_entry = TimestampOffset(NO_TIMESTAMP, base_offset)
        with self._lock:
            self._truncate_to_entries_locked(self._entries)

    @property
    def is_full(self) -> bool:
        """One entry is kept for the moment at which the segment is closed."""
        return self._entries >= self._max_entries - 1

    @property
    def last_entry(self) -> TimestampOffset:
        return self._last_entry

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> None:
        """Adds an entry if the timestamp is younger than the last one's."""
        with self._lock:
            if not skip_full_check and self._entries >= self._max_entries - 1:
                raise ValueError(f"the index {self.path} is full ({self._entries} entries)")
            last = self._last_entry
            if self._entries:
                if offset < last.offset:
                    raise InvalidOffsetError(
                        f"The offset {offset} is below the last one ({last.offset}) in {self.path}"
                    )
                if timestamp < last.timestamp:
                    raise ValueError(
                        f"the timestamp {timestamp} is below the last one ({last.timestamp}) in "
                        f"{self.path}"
                    )
            if timestamp <= last.timestamp:
                return
            relative = self.relative_offset(offset)
            end = (self._entries + 1) * self.ENTRY_SIZE
            if end > self._length:
                # Closing a segment whose index was trimmed already.
                self._resize_locked(end)
            if end > self._allocated:
                self._allocate_locked(end)
            ENTRY.pack_into(self._mapped_locked(), end - self.ENTRY_SIZE, timestamp, relative)
            self._entries += 1
            self._last_entry = TimestampOffset(timestamp, offset)

    def lookup(self, target_timestamp: int) -> TimestampOffset:
        """The last entry at or before the target; NO_TIMESTAMP and the base if there is none."""
        with self._lock:
            slot = self._lower_bound_slot_locked(_TIMESTAMP.unpack_from, 0, target_timestamp)
            if slot < 0:
                return TimestampOffset(NO_TIMESTAMP, self.base_offset)
            return self._entry_locked(slot)

    def entry(self, n: int) -> TimestampOffset:
        with self._lock:
            if not 0 <= n < self._entries:
                raise IndexError(f"{self.path} has {self._entries} entries, not {n}")
            return self._entry_locked(n)

    def truncate_to(self, offset: int) -> None:
        """Removes entries at and above an offset."""
        with self._lock:
            slot = self._lower_bound_slot_locked(
                _RELATIVE_OFFSET.unpack_from, 8, offset - self.base_offset - 1
            )
            self._truncate_to_entries_locked(slot + 1)

    def sanity_check(self) -> None:
        if self._length % self.ENTRY_SIZE:
            raise CorruptIndexError(
                f"The size of {self.path}, {self._length}, is not a multiple of {self.ENTRY_SIZE}"
            )
        if not self._entries:
            return
        if self._entries > 1 and self._last_entry.timestamp <= self.entry(0).timestamp:
            raise CorruptIndexError(f"The timestamps of {self.path} do not increase")
        if self._last_entry.offset < self.base_offset:
            raise CorruptIndexError(f"The last offset of {self.path} is below its base")

    def _truncate_to_entries_locked(self, entries: int) -> None:
        self._entries = entries
        self._last_entry = (
            self._entry_locked(entries - 1)
            if entries
            else TimestampOffset(NO_TIMESTAMP, self.base_offset)
        )

    def _entry_locked(self, n: int) -> TimestampOffset:
        timestamp, relative = ENTRY.unpack_from(self._mapped_locked(), n * 12)
        return TimestampOffset(timestamp, self.base_offset + relative)
