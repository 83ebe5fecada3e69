"""Index files read as they are on disk.

A broker's own index classes map a file and may resize it. Reading needs neither, but it meets what
they hide: the index of the segment being written is preallocated, so that zeros follow its entries,
and the index of a copied or crashed log may end anywhere.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kafkapy.pipeline.segments.segment_files import SegmentFile
from kafkapy.storage.log_file_utils import (
    INDEX_FILE_SUFFIX,
    LOG_FILE_SUFFIX,
    TIME_INDEX_FILE_SUFFIX,
)
from kafkapy.storage.offset_index import OffsetPosition
from kafkapy.storage.time_index import TimestampOffset

_OFFSET_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
_PIECE_ENTRIES: Final = 8192


def offset_entries(segment: SegmentFile) -> list[OffsetPosition]:
    """The entries of the offset index as far as they make sense; none if it is missing."""
    entries = _entries(segment, INDEX_FILE_SUFFIX, _OFFSET_ENTRY)
    good = _increasing(entries["offset"]) & _increasing(entries["position"])
    # The first batch of a segment has no entry.
    good &= (entries["offset"] > 0) & (entries["position"] > 0)
    good &= entries["position"] < segment.size
    return [
        OffsetPosition(segment.base_offset + int(offset), int(position))
        for offset, position in entries[: _leading(good)]
    ]


def time_entries(segment: SegmentFile) -> list[TimestampOffset]:
    """The entries of the time index as far as they make sense; none if it is missing."""
    entries = _entries(segment, TIME_INDEX_FILE_SUFFIX, _TIME_ENTRY)
    good = _increasing(entries["timestamp"]) & (entries["timestamp"] > 0)
    good &= entries["offset"] >= 0
    return [
        TimestampOffset(int(timestamp), segment.base_offset + int(offset))
        for timestamp, offset in entries[: _leading(good)]
    ]


def _entries(segment: SegmentFile, suffix: str, entry: np.dtype[np.void]) -> npt.NDArray[np.void]:
    path = segment.path.removesuffix(LOG_FILE_SUFFIX) + suffix
    pieces: list[bytes] = []
    try:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE_ENTRIES * entry.itemsize):
                pieces.append(piece)
                if not any(piece[-entry.itemsize :]):
                    break  # preallocated from here on
    except FileNotFoundError:
        return np.empty(0, entry)
    content = b"".join(pieces)
    return np.frombuffer(content, entry, len(content) // entry.itemsize)


def _increasing(values: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.bool_]:
    rising = np.ones(values.size, np.bool_)
    rising[1:] = values[1:] > values[:-1]
    return rising


def _leading(good: npt.NDArray[np.bool_]) -> int:
    """How many there are before the first that is not good."""
    return good.size if good.all() else int(good.argmin())
