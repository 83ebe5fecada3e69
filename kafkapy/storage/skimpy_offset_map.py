"""Which offset is the last of each key.

    hash of the key, 16 bytes | offset int64

An open-addressing table of such entries. A key is known by its MD5 alone: two keys with the same
one, which nobody has met by chance, would count as one.
"""

import itertools
import mmap
import struct
from hashlib import md5

HASH_SIZE = 16
BYTES_PER_ENTRY = HASH_SIZE + 8

_OFFSET = struct.Struct(">q")
_PROBES = struct.Struct(">iiii")
_EMPTY = bytes(HASH_SIZE)
NOT_FOUND = -1


class SkimpyOffsetMap:
    """Offsets by hashed key, in a block of memory of fixed size. Not thread-safe.

    The memory is taken by `clear`, as much as the expected entries need, and given back by `close`.

    Ports: org.apache.kafka.storage.internals.log.SkimpyOffsetMap
    """

    def __init__(self, memory: int) -> None:
        if memory < BYTES_PER_ENTRY:
            raise ValueError(f"{memory} bytes hold no entry")
        self.slots = memory // BYTES_PER_ENTRY  # constant after construction
        self._table: mmap.mmap | None = None
        self._slots_in_use = 0
        self._entries = 0
        # Everything up to here has been put, or had no key.
        self.latest_offset = -1

    def __len__(self) -> int:
        return self._entries

    @property
    def utilization(self) -> float:
        return self._entries / self.slots

    def clear(self, expected_entries: int | None = None) -> None:
        """Forgets everything and makes room; at most `expected_entries` keys will be put."""
        self.close()
        slots = self.slots
        if expected_entries is not None:
            # Not more than two thirds full, so that a key is found at the first or second probe.
            slots = max(min(slots, expected_entries + expected_entries // 2), 1)
        self._slots_in_use = slots
        # Anonymous: pages that no key falls into cost nothing.
        self._table = mmap.mmap(-1, slots * BYTES_PER_ENTRY)
        self._entries = 0
        self.latest_offset = -1

    def put(self, key: bytes, offset: int) -> None:
        """Later calls for the same key replace the offset."""
        table = self._memory()
        digest = md5(key, usedforsecurity=False).digest()
        position = self._find(table, digest)
        if position == NOT_FOUND:
            raise ValueError("the offset map is full")
        end = position + HASH_SIZE
        if table[position:end] == _EMPTY:
            table[position:end] = digest
            self._entries += 1
        _OFFSET.pack_into(table, end, offset)
        self.latest_offset = offset

    def get(self, key: bytes) -> int:
        """NOT_FOUND for a key that was not put."""
        table = self._memory()
        digest = md5(key, usedforsecurity=False).digest()
        position = self._find(table, digest)
        if position == NOT_FOUND or table[position : position + HASH_SIZE] == _EMPTY:
            return NOT_FOUND
        offset: int = _OFFSET.unpack_from(table, position + HASH_SIZE)[0]
        return offset

    def update_latest_offset(self, offset: int) -> None:
        self.latest_offset = offset

    def close(self) -> None:
        """Gives the memory back; `clear` makes the map usable again."""
        if self._table is not None:
            self._table.close()
            self._table = None

    def _memory(self) -> mmap.mmap:
        if self._table is None:
            raise ValueError("the offset map has no memory before `clear`")
        return self._table

    def _find(self, table: mmap.mmap, digest: bytes) -> int:
        """Where the entry is or would be; NOT_FOUND if all slots are taken by others."""
        slots = self._slots_in_use
        # The four parts of the hash are four independent places; then one after the other.
        probes = _PROBES.unpack(digest)
        for probe in itertools.chain(probes, range(probes[-1] + 1, probes[-1] + slots)):
            position: int = probe % slots * BYTES_PER_ENTRY
            found = table[position : position + HASH_SIZE]
            if found in (digest, _EMPTY):
                return position
        return NOT_FOUND
