"""Feeding the records section of a batch to a reader, whole or as it is decompressed."""

from collections.abc import Iterable, Iterator


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
