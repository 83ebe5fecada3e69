"""Feeding the records section of a batch to a reader, whole or as it is decompressed."""

from collections.abc import Iterable, Iterator
from typing import Final

from kafkapy.utils.compiled import IS_COMPILED

# Interpreted, many records are validated at once (records_alike), so that many are to be in sight.
# Compiled, the copy had better be small: what it displaces from the cache costs more than it does.
_WINDOW_BYTES: Final = 8 * 1024 if IS_COMPILED else 1024 * 1024


class RecordInput:
    """The unread part of a records section; not thread-safe.

    A reader works on `data` by position. Before it reads on past the end it calls `refill`, which
    renumbers positions: the new `data` starts at the position given. It is always bytes: single
    bytes are read from it faster than from a memoryview, compiled code above all.
    """

    __slots__ = ("_pieces", "bytes_read", "data")

    def __init__(self, data: bytes, pieces: Iterable[bytes] = ()) -> None:
        self.data = data
        self.bytes_read = len(data)
        self._pieces: Iterator[bytes] = iter(pieces)

    def refill(self, position: int, wanted: int) -> bytes:
        """Drops what is before position and reads on until `wanted` bytes are there, or the end.

        The result may be shorter than wanted only at the end of the input.
        """
        rest = self.data[position:]
        available = len(rest)
        parts: list[bytes] = [rest]
        while available < wanted:
            piece = next(self._pieces, None)
            if piece is None:
                break
            parts.append(piece)
            available += len(piece)
            self.bytes_read += len(piece)
        self.data = rest if len(parts) == 1 else b"".join(parts)
        return self.data

    def skip(self, position: int, count: int) -> bytes:
        """Drops what is before position and `count` bytes more, holding one piece at a time.

        Raises ValueError when the input ends first.
        """
        dropped = position + count
        while dropped > len(self.data):
            dropped -= len(self.data)
            piece = next(self._pieces, None)
            if piece is None:
                raise ValueError("the input ends too early")
            self.data = piece
            self.bytes_read += len(piece)
        self.data = self.data[dropped:]
        return self.data


class SectionInput(RecordInput):
    """A section that is in memory as a whole; `data` is a copy of the part being read."""

    __slots__ = ("_section", "_start")

    def __init__(self, section: memoryview) -> None:
        super().__init__(bytes(section[:_WINDOW_BYTES]))
        self._section = section
        self._start = 0  # of `data` in the section

    def refill(self, position: int, wanted: int) -> bytes:
        return self._move_to(self._start + position, max(wanted, _WINDOW_BYTES))

    def skip(self, position: int, count: int) -> bytes:
        start = self._start + position + count
        if start > len(self._section):
            raise ValueError("the input ends too early")
        return self._move_to(start, _WINDOW_BYTES)

    def _move_to(self, start: int, size: int) -> bytes:
        self._start = start
        self.data = bytes(self._section[start : start + size])
        self.bytes_read = start + len(self.data)
        return self.data
