"""From offsets to positions in a segment file."""

import struct
from typing import ClassVar, NamedTuple

from kafkapy.storage.abstract_index import AbstractIndex
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.storage_errors import CorruptIndexError, InvalidOffsetError

ENTRY = struct.Struct(">ii")  # offset relative to the base, position in the segment file
_KEY = struct.Struct(">i")


class OffsetPosition(NamedTuple):
    """Ports: org.apache.kafka.storage.internals.log.OffsetPosition"""

    offset: int
    position: int


class OffsetIndex(AbstractIndex):
    """Sparse: an entry says that its offset lies at or after its position. Thread-safe.

    Ports: org.apache.kafka.storage.internals.log.OffsetIndex
    """

    ENTRY_SIZE: ClassVar[int] = ENTRY.size

    def __init__(
        self, path: str, base_offset: int, *, max_index_size: int, file_system: FileSystem
    ) -> None:
        super().__init__(path, base_offset, max_index_size=max_index_size, file_system=file_system)
        self._last_offset = base_offset  # guarded by self._lock
        with self._lock:
            self._truncate_to_entries_locked(self._entries)

    @property
    def last_offset(self) -> int:
        """The base offset if there is no entry."""
        return self._last_offset

    def append(self, offset: int, position: int) -> None:
        with self._lock:
            entries = self._entries
            if entries >= self._max_entries:
                raise ValueError(f"the index {self.path} is full ({entries} entries)")
            if entries and offset <= self._last_offset:
                raise InvalidOffsetError(
                    f"The offset {offset} is not above the last one ({self._last_offset}) in "
                    f"{self.path}"
                )
            relative = self.relative_offset(offset)
            at = entries * 8
            if at + 8 > self._allocated:
                self._allocate_locked(at + 8)
            ENTRY.pack_into(self._mapped_locked(), at, relative, position)
            self._entries = entries + 1
            self._last_offset = offset

    def lookup(self, target_offset: int) -> OffsetPosition:
        """The last entry at or below the target; the start of the segment if there is none."""
        with self._lock:
            slot = self._lower_bound_slot_locked(
                _KEY.unpack_from, 0, target_offset - self.base_offset
            )
            return self._entry_locked(slot) if slot >= 0 else OffsetPosition(self.base_offset, 0)

    def fetch_upper_bound_offset(
        self, fetch_offset: OffsetPosition, fetch_size: int
    ) -> OffsetPosition | None:
        """The first entry behind `fetch_size` bytes from a position; None at the end."""
        end = fetch_offset.position + fetch_size
        with self._lock:
            slot = self._lower_bound_slot_locked(_KEY.unpack_from, 4, end - 1) + 1
            return self._entry_locked(slot) if slot < self._entries else None

    def entry(self, n: int) -> OffsetPosition:
        with self._lock:
            if not 0 <= n < self._entries:
                raise IndexError(f"{self.path} has {self._entries} entries, not {n}")
            return self._entry_locked(n)

    def truncate_to(self, offset: int) -> None:
        """Removes entries at and above an offset."""
        with self._lock:
            slot = self._lower_bound_slot_locked(_KEY.unpack_from, 0, offset - self.base_offset - 1)
            self._truncate_to_entries_locked(slot + 1)

    def sanity_check(self) -> None:
        if self._length % self.ENTRY_SIZE:
            raise CorruptIndexError(
                f"The size of {self.path}, {self._length}, is not a multiple of {self.ENTRY_SIZE}"
            )
        if self._entries and self._last_offset <= self.base_offset:
            # The first batch of a segment is never indexed.
            raise CorruptIndexError(
                f"The last offset of {self.path}, {self._last_offset}, is not above its base"
            )

    def _truncate_to_entries_locked(self, entries: int) -> None:
        self._entries = entries
        self._last_offset = self._entry_locked(entries - 1).offset if entries else self.base_offset

    def _entry_locked(self, n: int) -> OffsetPosition:
        relative, position = ENTRY.unpack_from(self._mapped_locked(), n * 8)
        return OffsetPosition(self.base_offset + relative, position)
